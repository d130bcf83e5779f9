// Package read answers what another controller recorded of an application that one of the two has handed over to the other.
package read

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/handover"
	"github.com/littoral-project/littoral/shared/peer"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/telemetry/tenant"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /controller/applications/{application}/{records}", Role: auth.Viewer}},
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
	var c peer.Config
	err := env.Config(&c)
	peers, err2 := peer.New(c, env.HTTP)
	return &Function{env.DB, peers}, errors.Join(err, err2)
}

// answer is what the controller recorded.
type answer struct {
	Controller string          `json:"controller"`
	Records    json.RawMessage `json:"records"`
}

// Handle asks the controller that has the application, or had it last. It answers 404 of an application that was never handed
// over, and 503 when that controller does not answer.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "application")
	if err != nil {
		return err
	}
	q := function.NewQuery(r, "after", "component", "since", "until", "tail", "text")
	query := url.Values{"controller": {f.peers.Name()}}
	for _, name := range []string{"after", "component", "since", "until", "tail", "text"} {
		if text := q.Text(name); text != "" {
			query.Set(name, text)
		}
	}
	if err := q.Err(); err != nil {
		return err
	}
	records := r.PathValue("records")
	switch records {
	case "history":
	case "logs":
		if err := tenant.May(r.Context(), f.db, auth.From(r.Context()), id); err != nil {
			return store.Classify(err)
		}
	default:
		return problem.New(problem.NotFound, "of an application there are history and logs, not %q", problem.Brief(records, 50))
	}
	h, err := handover.Get(r.Context(), f.db, id)
	if err != nil {
		return err
	}
	to, err := f.peers.Named(h.Peer)
	if err != nil {
		return err
	}
	out := answer{Controller: to.Name}
	path := "/controller/handovers/" + id.String() + "/" + records + "?" + query.Encode()
	if err := f.peers.Call(r.Context(), to, http.MethodGet, path, nil, &out.Records); err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, out)
}
