// Package vlinks has L2S-M carry the channels that were placed on its network: each is a virtual link (an L2Network of the type vlink)
// along the way that was found for it.
//
// L2S-M retries what it cannot do without end, and the more networks it is to connect to a provider that is not there the more traffic
// that makes. So it gets one network first, and others once that one is connected; while it cannot do what it was asked for it is asked
// more and more rarely, and is told of once.
package vlinks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/netma/l2sm"
	"github.com/littoral-project/littoral/shared/netma/state"
	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/channels"
	"github.com/littoral-project/littoral/shared/swm/groups"
	"github.com/littoral-project/littoral/shared/swm/report"
	"github.com/littoral-project/littoral/shared/swm/topologies"
)

// Limits.
const (
	most     = 20              // networks are made at once
	patience = 2 * time.Minute // for a network to be connected
	first    = time.Minute     // until L2S-M is asked again, and each time twice as long
	longest  = time.Hour
)

// Network is one as it is to be.
type Network struct {
	Namespace, Name string
	Labels          map[string]string
	Owner           report.Owner
	Config          string
}

// Found is one of ours as it is.
type Found struct {
	Namespace, Name    string
	Config             string
	CreatedAt          time.Time
	Internal, Provider string // connectivity: Available, Unavailable, Unknown, or empty
}

// Cluster is where the networks are.
type Cluster interface {
	Networks(ctx context.Context) ([]Found, error)
	Create(ctx context.Context, n Network) error
	Delete(ctx context.Context, namespace, name string) error
}

// provider is what is known of L2S-M while it does not do what it is asked for.
type provider struct {
	Failures int       `db:"failures"`
	NextAt   time.Time `db:"next_at"`
}

const (
	selectProvider = `select failures, next_at from vlink_provider`

	noteFailure = `insert into vlink_provider (failures, reason, next_at) values (1, $1, $2)
on conflict (one) do update set failures = vlink_provider.failures + 1, reason = excluded.reason, next_at = excluded.next_at`

	noteSuccess = `delete from vlink_provider`
)

// Reconcile makes the networks that are missing and deletes those that nobody needs any more. Done again it does nothing.
func Reconcile(ctx context.Context, db *store.DB, c Cluster, now time.Time) error {
	p, err := store.One(ctx, db, "read the state of L2S-M", pgx.RowToStructByName[provider], selectProvider)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if p.Failures > 0 && now.Before(p.NextAt) {
		return nil
	}
	wanted, err := desired(ctx, db)
	if err != nil {
		return err
	}
	reason := pass(ctx, c, wanted, now)
	if reason == "" && p.Failures == 0 {
		return nil
	}
	return db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if reason == "" {
			if _, err := tx.Exec(ctx, noteSuccess); err != nil {
				return store.Classify(err)
			}
			return history.Record(ctx, tx, history.Entry{Event: recorded.NetworkReachable, Message: "L2S-M connects its networks again"})
		}
		wait := min(first<<min(p.Failures, 10), longest)
		if _, err := tx.Exec(ctx, noteFailure, reason, now.Add(wait)); err != nil {
			return store.Classify(err)
		}
		if p.Failures > 0 {
			return nil
		}
		return history.Record(ctx, tx, history.Entry{Event: recorded.NetworkUnreachable, Message: reason})
	})
}

// pass does once what can be done, and says why not everything could.
func pass(ctx context.Context, c Cluster, wanted []Network, now time.Time) (reason string) {
	found, err := c.Networks(ctx)
	if err != nil {
		return fmt.Sprintf("L2S-M does not answer: %v", err)
	}
	connected := 0
	there := map[[2]string]bool{}
	for _, f := range found {
		at := [2]string{f.Namespace, f.Name}
		if !slices.ContainsFunc(wanted, func(n Network) bool { return n.Namespace == f.Namespace && n.Name == f.Name && n.Config == f.Config }) {
			if err := c.Delete(ctx, f.Namespace, f.Name); err != nil {
				return fmt.Sprintf("network %s/%s could not be deleted: %v", f.Namespace, f.Name, err)
			}
			there[at] = true // until it is gone
			continue
		}
		there[at] = true
		switch {
		case f.Internal == l2sm.Available && f.Provider != l2sm.Unavailable:
			connected++
		case now.Sub(f.CreatedAt) > patience:
			reason = fmt.Sprintf("network %s/%s is not connected by L2S-M", f.Namespace, f.Name)
		}
	}
	if reason != "" {
		return reason
	}
	room := most
	if connected == 0 {
		room = 1 - len(there)
	}
	for _, n := range wanted {
		if there[[2]string{n.Namespace, n.Name}] {
			continue
		}
		if room--; room < 0 {
			return ""
		}
		if err := c.Create(ctx, n); err != nil {
			return fmt.Sprintf("network %s/%s could not be made: %v", n.Namespace, n.Name, err)
		}
	}
	return ""
}

// desired are the networks of all channels that take a way through L2S-M's network and run for an object of the cluster.
func desired(ctx context.Context, db *store.DB) ([]Network, error) {
	using, err := channels.Using(ctx, db)
	if err != nil {
		return nil, err
	}
	t, err := topologies.Read(ctx, db)
	if err != nil {
		return nil, err
	}
	ways := state.NewWays(t)
	var out []Network
	for _, ch := range using {
		if ch.Application == channels.Reserved || !strings.EqualFold(ch.Network, l2sm.Network) {
			continue
		}
		way := ways.Of(ch)
		if len(way) == 0 {
			continue
		}
		group, err := groups.RunBy(ctx, db, ch.Application)
		if err != nil {
			return nil, err
		}
		owner, namespace, err := report.OwnerOf(ctx, db, ch.Application, group)
		if err != nil {
			return nil, err
		}
		if owner.UID == "" {
			continue
		}
		config, err := configOf(ch.Name, way)
		if err != nil {
			return nil, err
		}
		out = append(out, Network{
			Namespace: namespace, Name: report.ChannelName(owner.Name, ch.Source, ch.Name), Owner: owner, Config: config,
			Labels: map[string]string{groups.LabelGroup: owner.Name, l2sm.LabelOurs: "true"},
		})
	}
	return out, nil
}

// way is a path of a vlink.
type way struct {
	Name string   `json:"name"`
	From string   `json:"fromEndpoint"`
	To   string   `json:"toEndpoint"`
	Path []string `json:"path"`
}

// configOf is the config of a vlink: the nodes that it goes through, there and back.
func configOf(channel string, links []*network.Link) (string, error) {
	nodes := []string{links[0].Source}
	for _, l := range links {
		nodes = append(nodes, l.Target)
	}
	back := slices.Clone(nodes)
	slices.Reverse(back)
	text, err := json.Marshal(map[string]any{"overlay-parameters": map[string]any{"overlay-paths": []way{
		{channel, nodes[0], back[0], nodes}, {channel + "-back", back[0], nodes[0], back},
	}}})
	return string(text), err
}
