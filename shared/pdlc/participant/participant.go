// Package participant trains on the series of this cluster for the federations of other controllers. What leaves is how the weights
// should change; the message has no field for a sample.
package participant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/forecast"
	"github.com/littoral-project/littoral/shared/pdlc/federated"
	"github.com/littoral-project/littoral/shared/pdlc/federation"
	"github.com/littoral-project/littoral/shared/peer"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/telemetry"
)

// Config of a participant.
type Config struct {
	// Federations that this controller takes part in: a JSON list of peer (as in CONTROLLER_PEERS, or itself), name and query.
	Federations string `envconfig:"FEDERATIONS"`
}

// Part is one of them.
type Part struct {
	Peer  string `json:"peer"`
	Name  string `json:"name"`
	Query string `json:"query"`
}

// Parts reads the setting.
func (c Config) Parts() ([]Part, error) {
	if strings.TrimSpace(c.Federations) == "" {
		return nil, nil
	}
	var all []Part
	if err := json.Unmarshal([]byte(c.Federations), &all); err != nil {
		return nil, fmt.Errorf("FEDERATIONS is no JSON list of peer, name and query: %w", err)
	}
	for i, p := range all {
		if p.Peer == "" || p.Name == "" || p.Query == "" {
			return nil, fmt.Errorf("FEDERATIONS[%d] needs peer, name and query", i)
		}
	}
	return all, nil
}

// Participant trains on the series of this cluster for federations of others.
type Participant struct {
	DB        *store.DB // for federations of our own, which no message is sent for
	Peers     *peer.Client
	Telemetry *telemetry.Client
	Parts     []Part
	Log       *slog.Logger
}

// values is how many steps of a series are trained on.
const values = 2000

// Work takes part in the present round of each federation. One that cannot be reached, or has no series here, keeps no other.
func (p Participant) Work(ctx context.Context) error {
	var errs []error
	for _, part := range p.Parts {
		if err := p.one(ctx, part); err != nil {
			p.Log.WarnContext(ctx, "no part in a round", "federation", part.Name, "peer", part.Peer, "error", err)
			if ctx.Err() != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

func (p Participant) one(ctx context.Context, part Part) error {
	of, err := p.coordinator(part)
	if err != nil {
		return err
	}
	f, err := of.round(ctx)
	if problem.KindOf(err) == problem.NotFound {
		return nil // a training begins it when it is asked for, and ends it
	}
	if err != nil {
		return err
	}
	if f.Training != nil && part.Peer == p.Peers.Name() {
		return nil // it takes part itself, without what it holds back
	}
	if err := f.Plan.Check(); err != nil {
		return fmt.Errorf("the plan of the coordinator: %w", err)
	}
	step := time.Duration(f.Plan.Step) * time.Second
	end := time.Now().UTC().Truncate(step)
	found, err := p.Telemetry.QueryRange(ctx, part.Query, end.Add(-values*step), end, step)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("telemetry has no series for %s", part.Query)
	}
	random, err := federated.Random()
	if err != nil {
		return err
	}
	var points []forecast.Point
	for _, one := range found[0].Points {
		points = append(points, forecast.Point{At: one.At, Value: one.Value})
	}
	s, err := forecast.Regular(points, step)
	if err != nil {
		return err
	}
	change, windows, err := federated.Train(ctx, f.Plan.Plan, f.Weights, s.Values, random)
	if err != nil {
		return err
	}
	return of.send(ctx, federation.Sent{Round: f.Round, Change: change, Windows: windows})
}

// coordinator has a federation: a peer over HTTP, or we.
type coordinator interface {
	round(ctx context.Context) (federation.Federation, error)
	send(ctx context.Context, change federation.Sent) error
}

func (p Participant) coordinator(part Part) (coordinator, error) {
	if part.Peer == p.Peers.Name() {
		return own{p.DB, part.Name, part.Peer}, nil
	}
	at, err := p.Peers.Named(part.Peer)
	return other{p.Peers, at, "/pdlc/federations/" + url.PathEscape(part.Name)}, err
}

type other struct {
	peers *peer.Client
	at    peer.Peer
	path  string
}

func (o other) round(ctx context.Context) (f federation.Federation, err error) {
	return f, o.peers.Call(ctx, o.at, http.MethodGet, o.path+"/round", nil, &f)
}

func (o other) send(ctx context.Context, change federation.Sent) error {
	return o.peers.Call(ctx, o.at, http.MethodPost, o.path+"/updates", change, nil)
}

// own takes part under the name of this controller.
type own struct {
	db         *store.DB
	name, self string
}

func (o own) round(ctx context.Context) (federation.Federation, error) {
	return federation.Get(ctx, o.db, o.name)
}

func (o own) send(ctx context.Context, change federation.Sent) error {
	return o.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		return federation.Take(ctx, tx, o.name, o.self, change)
	})
}
