// Package participate trains on the series of this cluster for the federations of other controllers. Only weights leave.
package participate

import (
	"context"
	"errors"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/pdlc/participant"
	"github.com/littoral-project/littoral/shared/peer"
	"github.com/littoral-project/littoral/shared/telemetry"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{events.Tick}, Class: function.Series, Concurrency: 1,
	Needs: []function.Need{function.Telemetry, function.ClientCredentials, function.Peers},
}

// Function is the task.
type Function struct{ work participant.Participant }

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	var c participant.Config
	var t telemetry.Config
	if err := errors.Join(env.Config(&c), env.Config(&t)); err != nil {
		return nil, err
	}
	parts, err := c.Parts()
	if err != nil {
		return nil, err
	}
	peers, err := peer.Open(env.Config, env.HTTP)
	if err != nil {
		return nil, err
	}
	client, err := telemetry.New(t, env.HTTP)
	return &Function{participant.Participant{DB: env.DB, Peers: peers, Telemetry: client, Parts: parts, Log: env.Log}}, err
}

// Run takes part in the present rounds. Twice in one round replaces what was sent.
func (f *Function) Run(ctx context.Context) error { return f.work.Work(ctx) }
