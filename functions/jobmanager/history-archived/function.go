// Package historyarchived lists what happened long ago: what was moved from history into the object store.
package historyarchived

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/archive"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/listing"
	"github.com/littoral-project/littoral/shared/objects/open"
	"github.com/littoral-project/littoral/shared/problem"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /jobmanager/history/archived", Role: auth.Viewer}},
	Class:  function.Batch,
	Needs:  []function.Need{function.Objects},
}

// Function is the operation with its archive, nil where none is set.
type Function struct{ archive *archive.Archive }

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	var config open.Config
	if err := env.Config(&config); err != nil {
		return nil, err
	}
	store, err := open.Store(config, env.HTTP)
	if store == nil || err != nil {
		return &Function{}, err
	}
	return &Function{archive: archive.New(env.DB, store)}, nil
}

// Handle answers like the listing of history that is not archived, with the same parameters.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	want, err := listing.History(r)
	if err != nil {
		return err
	}
	if f.archive == nil {
		return problem.New(problem.NotFound, "there is no archive here (OBJECTS_URL is not set)")
	}
	var entries []history.Entry
	var cut bool
	if want.After < 0 {
		entries, cut, err = f.archive.Before(r.Context(), want.Application, want.Before, want.Limit, want.Events...)
	} else {
		entries, err = f.archive.After(r.Context(), want.Application, want.After, want.Limit, want.Events...)
	}
	if err != nil {
		return err
	}
	return listing.WriteHistory(w, r, &want, entries, cut)
}
