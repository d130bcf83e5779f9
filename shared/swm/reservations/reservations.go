// Package reservations promises bandwidth on ways through the network to others than our applications, whose channels get
// theirs when they are placed. Both count against the same media, so that nothing is promised twice.
package reservations

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/channels"
	"github.com/littoral-project/littoral/shared/swm/topologies"
)

// Request asks for a way from a node to another.
type Request struct {
	Source     string        `db:"source"      json:"source"`
	Target     string        `db:"target"      json:"target"`
	Class      network.Class `db:"class"       json:"serviceClass"`
	Bandwidth  int64         `db:"bandwidth"   json:"bandwidthBits"`
	MaxLatency time.Duration `db:"max_latency" json:"maxDelayNanos,omitempty"`
}

// Reservation is one that was confirmed.
type Reservation struct {
	Name string `db:"name" json:"name"`
	Request
	Latency   time.Duration `db:"latency"    json:"latencyNanos"`
	Network   string        `db:"network"    json:"network"`
	Path      string        `db:"path"       json:"path"`
	UpdatedAt time.Time     `db:"updated_at" json:"updatedAt"`
}

const (
	selectAll = `select name, source, target, class, bandwidth, max_latency, latency, network, path, updated_at
from network_reservations order by name`

	upsert = `insert into network_reservations (name, source, target, class, bandwidth, max_latency, latency, network, path)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict (name) do update set source = excluded.source, target = excluded.target, class = excluded.class,
	bandwidth = excluded.bandwidth, max_latency = excluded.max_latency, latency = excluded.latency, network = excluded.network,
	path = excluded.path, updated_at = now()
returning updated_at`

	remove = `delete from network_reservations where name = $1`

	ways = 4 // the shortest ones that are tried where no paths are given, as in a placement
)

// Check finds all faults of a request.
func (r *Request) Check() error {
	var faults problem.Faults
	for _, end := range [][2]string{{"source", r.Source}, {"target", r.Target}} {
		if end[1] == "" || len(end[1]) > 253 {
			faults.Add(end[0], 0, "is to name a node")
		}
	}
	if r.Class == "" {
		r.Class = network.BestEffort
	}
	if r.Class != network.BestEffort && r.Class != network.Assured {
		faults.Add("serviceClass", 0, "is not %s or %s", network.BestEffort, network.Assured)
	}
	if r.Bandwidth <= 0 || r.Bandwidth > network.MaxBandwidth {
		faults.Add("bandwidthBits", 0, "is to be more than 0 and at most %d bit/s", int64(network.MaxBandwidth))
	}
	if r.MaxLatency < 0 {
		faults.Add("maxDelayNanos", 0, "is negative")
	}
	return faults.Err("the reservation is invalid")
}

// List returns all reservations by name.
func List(ctx context.Context, q store.Querier) ([]Reservation, error) {
	return store.Collect(ctx, q, "read reservations of the network", pgx.RowToStructByName[Reservation], selectAll)
}

// Confirm stores a reservation under a name, in place of an earlier one, with the fastest way that bears it. The error is
// Conflict, with the reason, when none does; the earlier one then stays.
func Confirm(ctx context.Context, tx *store.Tx, name string, r Request) (*Reservation, error) {
	if err := tx.Lock(ctx, store.LockPlacement); err != nil { // channels are placed under it too
		return nil, err
	}
	t, err := topologies.Read(ctx, tx)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, problem.New(problem.Conflict, "refused: no network was described")
	}
	using, err := channels.Using(ctx, tx)
	if err != nil {
		return nil, err
	}
	for i, c := range using {
		if c.Application == channels.Reserved && c.Name == name {
			using = append(using[:i], using[i+1:]...)
			break
		}
	}
	way, why := find(channels.Occupied(t, using, func(uuid.UUID) bool { return false }), r)
	if way == nil {
		return nil, problem.New(problem.Conflict, "refused: %s", why)
	}
	out := &Reservation{Name: name, Request: r, Latency: way.Latency, Network: way.Network, Path: way.Path}
	err = tx.QueryRow(ctx, upsert, name, r.Source, r.Target, r.Class, r.Bandwidth, int64(r.MaxLatency), int64(way.Latency), way.Network,
		way.Path).Scan(&out.UpdatedAt)
	if err != nil {
		return nil, fmt.Errorf("store a reservation: %w", err)
	}
	return out, nil
}

// find returns the fastest way that bears the request, or why there is none.
func find(t *network.Topology, r Request) (*network.Route, string) {
	routes := network.NewRoutes(t, ways)
	all := routes.Between(r.Source, r.Target)
	if len(all) == 0 {
		return nil, fmt.Sprintf("no way leads from %s to %s", problem.Brief(r.Source, 60), problem.Brief(r.Target, 60))
	}
	var why []string
	for i := range all {
		way := &all[i]
		needed := map[int32]int64{}
		for _, m := range way.Media {
			needed[m] += r.Bandwidth
		}
		reason := ""
		switch {
		case !way.Class.Serves(r.Class):
			reason = "is not of the class " + string(r.Class)
		case r.MaxLatency > 0 && way.Latency > r.MaxLatency:
			reason = fmt.Sprintf("takes %v", way.Latency)
		}
		for m, bits := range needed {
			if free := routes.Media[m].Free(); reason == "" && free < bits {
				reason = fmt.Sprintf("has %d bit/s left on %s", free, routes.Media[m].ID)
			}
		}
		if reason == "" {
			return way, ""
		}
		why = append(why, way.String()+" "+reason)
	}
	return nil, strings.Join(why, "; ")
}

// Delete gives a reservation back. The error is NotFound.
func Delete(ctx context.Context, tx *store.Tx, name string) error {
	gone, err := tx.Exec(ctx, remove, name)
	if err != nil {
		return errors.Join(errors.New("delete a reservation"), err)
	}
	if gone.RowsAffected() == 0 {
		return problem.New(problem.NotFound, "there is no reservation %q", problem.Brief(name, 60))
	}
	return nil
}
