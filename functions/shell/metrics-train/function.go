// Package metricstrain asks for a model to be trained for the ICOS shell.
package metricstrain

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icosshell"
	"github.com/littoral-project/littoral/shared/metricsexport"
	"github.com/littoral-project/littoral/shared/objects/open"
	"github.com/littoral-project/littoral/shared/peer"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "POST /api/v3/metrics/train", Role: auth.Operator}},
	Emits:  []string{events.TrainingRequested},
	Class:  function.Medium,                                                    // a hundred thousand values may be sent
	Needs:  []function.Need{function.SignIn, function.Objects, function.Peers}, // refresh tokens are sent as api_key
}

// Function is the operation with its store, and where models are kept.
type Function struct {
	icosshell.Callers

	db     *store.DB
	models metricsexport.Models
	peers  []peer.Peer
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	callers, err := icosshell.NewCallers(env)
	if err != nil {
		return nil, err
	}
	var c open.Config
	if err := env.Config(&c); err != nil {
		return nil, err
	}
	peers, err := peer.Known(env.Config)
	if err != nil {
		return nil, err
	}
	objects, err := open.Store(c, env.HTTP)
	return &Function{callers, env.DB, metricsexport.NewModels(objects), peers}, err
}

// Handle answers 202 and where the training can be watched.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var o metricsexport.Order
	if err := function.DecodeJSON(r, &o); err != nil {
		return err
	}
	if err := f.models.Check(); err != nil {
		return err
	}
	o.Peers = len(f.peers)
	var t *metricsexport.Training
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		t, err = metricsexport.Request(ctx, tx, o, auth.From(ctx).Subject)
		return err
	})
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/metricsexport/trainings/"+t.ID.String())
	return function.WriteJSON(w, http.StatusAccepted, t)
}
