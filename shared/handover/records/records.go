// Package records lets the two controllers of a hand-over read what each has recorded of the application.
package records

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/handover"
	"github.com/littoral-project/littoral/shared/peer"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Kind is what is recorded.
type Kind string

// The kinds, as in the paths of the API.
const (
	History Kind = "history"
	Logs    Kind = "logs"
)

// How many entries and lines one answer has without being asked for more, and at most.
const (
	UsualEntries, MostEntries = 200, 1000
	UsualLines, MostLines     = 200, 1000
)

// Asker is the parameter with the name of the controller that asks.
const Asker = "controller"

// Answer is what the other controller recorded.
type Answer struct {
	Controller string          `json:"controller"`
	Records    json.RawMessage `json:"records"`
}

// Theirs asks the controller that has the application from this one, had it last, or gave it. The error is NotFound of an application
// that was never handed over, and Unavailable when that controller does not answer.
func Theirs(ctx context.Context, q store.Querier, peers *peer.Client, id uuid.UUID, kind Kind, query url.Values) (*Answer, error) {
	h, err := handover.Get(ctx, q, id)
	if err != nil {
		return nil, err
	}
	to, err := peers.Named(h.Peer)
	if err != nil {
		return nil, err
	}
	answer := &Answer{Controller: to.Name}
	query.Set(Asker, peers.Name())
	path := "/controller/handovers/" + id.String() + "/" + string(kind) + "?" + query.Encode()
	return answer, peers.Call(ctx, to, http.MethodGet, path, nil, &answer.Records)
}

// By reads who asks.
func By(q *function.Query) string {
	name := q.Text(Asker)
	if name == "" {
		q.Fault(Asker, "is missing: the name of the controller that asks")
	}
	return name
}

// May refuses a caller who asks for records of this controller and is not the peer of that name (Forbidden), or has nothing to do with
// the application (NotFound).
func May(ctx context.Context, q store.Querier, peers *peer.Client, name, subject string, id uuid.UUID) error {
	from, err := peers.Caller(name, subject)
	if err != nil {
		return err
	}
	h, err := handover.Get(ctx, q, id)
	if err != nil {
		return err
	}
	if h.Peer != from.Name {
		return problem.New(problem.NotFound, "controller %s has nothing to do with application %s", from.Name, id)
	}
	return nil
}
