// Package revisionget returns a descriptor that an application was given, and what it changed.
package revisionget

import (
	"context"
	"math"
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/difference"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /jobmanager/groups/{group_uuid}/revisions/{revision}", Role: auth.Viewer}},
	Class:  function.Medium, // two descriptors, parsed
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// answer is a revision with what it changed.
type answer struct {
	*application.Revision
	Against int64              `json:"against,omitempty"` // the revision that it is compared with; absent for the first
	Fields  []difference.Field `json:"fields"`
}

// latest names the newest revision in a path.
const latest = "latest"

// Handle answers the revision of the number, or the latest, with its descriptor and the fields that differ from the
// revision ?against=N, else from the one before it.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "group_uuid")
	if err != nil {
		return err
	}
	query := function.NewQuery(r, "against")
	against := query.Int("against", 0, 1, math.MaxInt64)
	if err := query.Err(); err != nil {
		return err
	}
	var number int64
	if text := r.PathValue("revision"); text != latest {
		if number, err = strconv.ParseInt(text, 10, 64); err != nil || number < 1 {
			return problem.New(problem.Malformed, "revision %q is neither a number nor %q", text, latest)
		}
	}
	a, err := f.compare(r.Context(), id, number, against)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, a)
}

func (f *Function) compare(ctx context.Context, id uuid.UUID, number, against int64) (*answer, error) {
	revision, err := application.RevisionOf(ctx, f.db, id, number)
	if err != nil {
		return nil, err
	}
	a := &answer{Revision: revision, Fields: []difference.Field{}}
	var other *application.Revision
	if against != 0 {
		other, err = application.RevisionOf(ctx, f.db, id, against)
	} else {
		other, err = application.RevisionBefore(ctx, f.db, id, revision.Number)
	}
	if err != nil || other == nil {
		return a, err
	}
	a.Against = other.Number
	before, err := other.Parsed()
	if err != nil {
		return nil, err
	}
	now, err := revision.Parsed()
	if err != nil {
		return nil, err
	}
	a.Fields = append(a.Fields, difference.Fields(before, now)...)
	return a, nil
}
