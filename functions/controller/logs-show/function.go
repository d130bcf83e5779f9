// Package logsshow shows another controller what an application wrote here that one of the two has handed over to the other.
package logsshow

import (
	"errors"
	"net/http"
	"time"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/handover/records"
	"github.com/littoral-project/littoral/shared/logs"
	"github.com/littoral-project/littoral/shared/logs/ask"
	"github.com/littoral-project/littoral/shared/logs/moves"
	"github.com/littoral-project/littoral/shared/logs/open"
	"github.com/littoral-project/littoral/shared/peer"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /controller/handovers/{application}/logs", Role: auth.Controller}},
	Class:  function.Series,
	Needs:  []function.Need{function.Logs, function.ClientCredentials, function.Peers},
}

// Function is the operation with its stores.
type Function struct {
	db    *store.DB
	logs  logs.Store
	peers *peer.Client
}

// New reads the settings, and opens the store of logs that they choose.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	var c open.Config
	if err := env.Config(&c); err != nil {
		return nil, err
	}
	var err, err2 error
	f.peers, err = peer.Open(env.Config, env.HTTP)
	f.logs, err2 = open.Store(c, env.HTTP)
	return f, errors.Join(err, err2)
}

// Handle answers lines, oldest first, and moves. It answers 403 to a controller that this one does not work with, and 404 of an
// application that it has nothing to do with.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "application")
	if err != nil {
		return err
	}
	q := function.NewQuery(r, append(ask.Names(), records.Asker)...)
	from, query := records.By(q), ask.Query(q, time.Now(), records.UsualLines, records.MostLines)
	query.Application = id.String()
	if err := q.Err(); err != nil {
		return err
	}
	if err := records.May(r.Context(), f.db, f.peers, from, auth.From(r.Context()).Subject, id); err != nil {
		return err
	}
	answer, err := moves.Read(r.Context(), f.db, f.logs, id, query)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, answer)
}
