// Package handovercreate begins to hand an application over to another controller, or brings it back to the one it comes from.
package handovercreate

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/handover"
	"github.com/littoral-project/littoral/shared/peer"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:     []function.Route{{Pattern: "POST /controller/handovers", Role: auth.Operator}},
	Emits:      []string{events.HandoverRequested, events.ApplicationStopped, events.ApplicationDeleted, events.JobReady},
	PrewakeFor: []string{events.HandoverRequested},
	Needs:      []function.Need{function.ClientCredentials, function.Peers},
}

// Function is the operation with its store.
type Function struct {
	db    *store.DB
	peers *peer.Client
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	peers, err := peer.Open(env.Config, env.HTTP)
	return &Function{env.DB, peers}, err
}

type request struct {
	Application uuid.UUID `json:"application"`
	To          string    `json:"to"`   // name of a controller; "" = any that takes it
	Home        bool      `json:"home"` // back to where it was submitted
	Reason      string    `json:"reason"`
}

const longest = 500 // bytes of a reason

func (in request) check() error {
	var faults problem.Faults
	if in.Application == uuid.Nil {
		faults.Add("application", 0, "is missing")
	}
	if in.Home && in.To != "" {
		faults.Add("to", 0, "cannot be given together with home")
	}
	if len(in.Reason) > longest {
		faults.Add("reason", 0, "has more than %d bytes", longest)
	}
	return faults.Err("the hand-over is not understood")
}

// Handle answers 202 with the hand-over, which goes on by itself.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var in request
	if err := function.DecodeJSON(r, &in); err != nil {
		return err
	}
	if err := in.check(); err != nil {
		return err
	}
	if in.Reason == "" {
		in.Reason = "asked for by " + auth.From(r.Context()).Subject
	}
	if in.To != "" {
		if _, err := f.peers.Named(in.To); err != nil {
			return err
		}
	} else if !in.Home && len(f.peers.Peers()) == 0 {
		return problem.New(problem.Conflict, "this controller works with no other (CONTROLLER_PEERS)")
	}
	var h *handover.Handover
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		h, err = f.begin(ctx, tx, in)
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusAccepted, h)
}

func (f *Function) begin(ctx context.Context, tx *store.Tx, in request) (*handover.Handover, error) {
	if !in.Home {
		return handover.Request(ctx, tx, in.Application, in.To, in.Reason)
	}
	h, err := handover.Get(ctx, tx, in.Application)
	if err != nil {
		return nil, err
	}
	if h.Side == handover.Receiver {
		return handover.Return(ctx, tx, in.Application, in.Reason)
	}
	return handover.Recall(ctx, tx, in.Application, in.Reason)
}
