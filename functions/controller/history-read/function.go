// Package historyread answers the history that another controller has of an application that one of the two has handed over to the
// other.
package historyread

import (
	"math"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/handover/records"
	"github.com/littoral-project/littoral/shared/peer"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /controller/applications/{application}/history", Role: auth.Viewer}},
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
// over, and 503 when that controller does not answer.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "application")
	if err != nil {
		return err
	}
	q := function.NewQuery(r, "after", "limit")
	q.Int("after", 0, 0, math.MaxInt64)
	q.Int("limit", 1, 1, records.MostEntries)
	query := q.Given()
	if err := q.Err(); err != nil {
		return err
	}
	answer, err := records.Theirs(r.Context(), f.db, f.peers, id, records.History, query)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, answer)
}
