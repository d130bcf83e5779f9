// Package participant trains on the series of this cluster for the federations of other controllers. What leaves is how the weights
// should change; the message has no field for a sample.
package participant

import (
	"context"
	cryptorand "crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/forecast"
	"github.com/littoral-project/littoral/shared/pdlc/federated"
	"github.com/littoral-project/littoral/shared/pdlc/federation"
	"github.com/littoral-project/littoral/shared/peer"
	"github.com/littoral-project/littoral/shared/telemetry"
)

// Config of a participant.
type Config struct {
	// Federations that this controller takes part in: a JSON list of peer (as in CONTROLLER_PEERS), name and query.
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
	at, err := p.Peers.Named(part.Peer)
	if err != nil {
		return err
	}
	path := "/pdlc/federations/" + url.PathEscape(part.Name)
	var f federation.Federation
	if err := p.Peers.Call(ctx, at, http.MethodGet, path+"/round", nil, &f); err != nil {
		return err
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
	var seed [16]byte
	if _, err := cryptorand.Read(seed[:]); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(binary.LittleEndian.Uint64(seed[:8]), binary.LittleEndian.Uint64(seed[8:])))
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
	return p.Peers.Call(ctx, at, http.MethodPost, path+"/updates", federation.Sent{Round: f.Round, Change: change, Windows: windows}, nil)
}
