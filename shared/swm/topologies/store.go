package topologies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

// Stored is a document under its name.
type Stored struct {
	Name      string    `db:"name"       json:"name"`
	Document  Document  `db:"document"   json:"spec"`
	UpdatedAt time.Time `db:"updated_at" json:"updatedAt"`
}

const (
	upsert = `insert into network_topologies (name, document) values ($1, $2)
on conflict (name) do update set document = excluded.document, updated_at = now()`

	remove = `delete from network_topologies where name = $1`

	selectAll = `select name, document, updated_at from network_topologies order by name`

	selectOne = `select name, document, updated_at from network_topologies where name = $1`
)

// Save stores a document under a name, in place of an earlier one. All documents together must make a topology: the error
// is Invalid when a base is missing or two describe one network.
func Save(ctx context.Context, tx *store.Tx, name string, d *Document) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, upsert, name, text); err != nil {
		return fmt.Errorf("store the topology: %w", err)
	}
	_, err = Read(ctx, tx)
	return err
}

// Announce tells that there is room on a network where there was none: who waits for a place is looked at again. about is what
// changed, and details say how, in a sentence each.
func Announce(ctx context.Context, tx *store.Tx, about string, details ...string) error {
	changes := make([]events.TopologyChange, len(details))
	for i, detail := range details {
		changes[i] = events.TopologyChange{Change: topology.Network, Detail: detail}
	}
	return tx.Emit(ctx, events.TopologyChanged, "network/"+about, events.Topology{Snapshot: uuid.New(), Changes: changes})
}

// Delete forgets a document. The error is NotFound, or Conflict when another one lies on its network.
func Delete(ctx context.Context, tx *store.Tx, name string) error {
	gone, err := tx.Exec(ctx, remove, name)
	if err != nil {
		return fmt.Errorf("delete the topology: %w", err)
	}
	if gone.RowsAffected() == 0 {
		return problem.New(problem.NotFound, "there is no topology %q", name)
	}
	_, err = Read(ctx, tx)
	if problem.KindOf(err) == problem.Invalid {
		return problem.New(problem.Conflict, "another topology needs it: %v", err)
	}
	return err
}

// Get returns a document. The error is NotFound.
func Get(ctx context.Context, q store.Querier, name string) (*Stored, error) {
	s, err := store.One(ctx, q, "read the topology", pgx.RowToAddrOfStructByName[Stored], selectOne, name)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, problem.New(problem.NotFound, "there is no topology %q", name)
	}
	return s, err
}

// List returns all documents.
func List(ctx context.Context, q store.Querier) ([]Stored, error) {
	return store.Collect(ctx, q, "read the topologies", pgx.RowToStructByName[Stored], selectAll)
}

// Read returns the topology that all documents describe; nil without any.
func Read(ctx context.Context, q store.Querier) (*network.Topology, error) {
	all, err := List(ctx, q)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	documents := make([]Document, len(all))
	for i := range all {
		documents[i] = all[i].Document
	}
	return Join(documents)
}

// Join makes one topology of documents. A node may be in several; it forwards if one of them says so. A link of a network on
// another one uses the medium of the base's link between the same nodes.
func Join(documents []Document) (*network.Topology, error) {
	var t network.Topology
	var faults problem.Faults
	at := map[string]int{}
	byName := map[string]*network.Network{}
	for i := range documents {
		p, err := documents[i].network("", &faults)
		if err != nil {
			return nil, err
		}
		for _, n := range p.nodes {
			k, known := at[n.ID]
			if !known {
				at[n.ID] = len(t.Nodes)
				t.Nodes = append(t.Nodes, n)
			} else if n.Kind == network.Forwarder {
				t.Nodes[k].Kind = n.Kind
			}
		}
		t.Networks = append(t.Networks, p.network)
	}
	for i := range t.Networks {
		byName[t.Networks[i].ID] = &t.Networks[i]
	}
	for i := range t.Networks {
		useBase(&t.Networks[i], byName)
	}
	if err := faults.Err("the topologies do not make one"); err != nil {
		return nil, err
	}
	return &t, t.Validate("")
}

// useBase gives the links without a medium that of the link below them.
func useBase(n *network.Network, all map[string]*network.Network) {
	for i := range n.Links {
		l := &n.Links[i]
		for below, steps := all[n.Base], 0; l.Medium == "" && below != nil && steps < len(all); below, steps = all[below.Base], steps+1 {
			for _, b := range below.Links {
				if b.Source == l.Source && b.Target == l.Target {
					l.Medium = b.Medium
					if l.Latency == 0 {
						l.Latency = b.Latency
					}
				}
			}
		}
	}
}
