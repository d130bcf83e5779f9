// Package logsread answers what an application wrote at another controller that one of the two has handed it over to.
package logsread

import (
	"net/http"
	"time"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/handover/records"
	"github.com/littoral-project/littoral/shared/logs/ask"
	"github.com/littoral-project/littoral/shared/peer"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/telemetry/tenant"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /controller/applications/{application}/logs", Role: auth.Viewer}},
	Class:  function.Remote,
	Needs:  []function.Need{function.ClientCredentials, function.Peers},
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

// Handle asks the controller that has the application, or had it last. It answers 404 of an application that was never handed
// over, and of one that the caller may not read, and 503 when that controller does not answer.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "application")
	if err != nil {
		return err
	}
	q := function.NewQuery(r, ask.Names()...)
	ask.Query(q, time.Now(), records.MostLines, records.MostLines)
	query := q.Given()
	if err := q.Err(); err != nil {
		return err
	}
	theirs, err := tenant.May(r.Context(), f.db, auth.From(r.Context()), id)
	if err != nil {
		return store.Classify(err)
	}
	answer, err := records.Theirs(r.Context(), theirs, f.peers, id, records.Logs, query)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, answer)
}
