// Package objectlist lists the objects of SWM of one kind.
package objectlist

import (
	"net/http"
	"strings"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/groups"
	"github.com/littoral-project/littoral/shared/swm/serve"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /swm/objects/{kind}", Role: auth.Viewer}},
	Class:  function.Medium,
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the objects by namespace and name; ?namespace= narrows it. There are 500 at most; ?after=namespace/name asks for
// those that follow.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	kind, err := groups.KindOf(r.PathValue("kind"))
	if err != nil {
		return err
	}
	query := function.NewQuery(r, "namespace", "after")
	namespace, at := query.Text("namespace"), query.Text("after")
	if err := query.Err(); err != nil {
		return err
	}
	after := groups.Key{Kind: kind}
	if at != "" {
		var named bool
		if after.Namespace, after.Name, named = strings.Cut(at, "/"); !named {
			return problem.New(problem.Malformed, "after is to be a namespace and a name, with a slash between")
		}
	}
	all, more, err := groups.List(r.Context(), f.db, kind, namespace, after)
	if err != nil {
		return err
	}
	objects := make([]*serve.Object, len(all))
	for i, s := range all {
		if objects[i], err = serve.Show(r.Context(), f.db, s); err != nil {
			return err
		}
	}
	if more {
		last := all[len(all)-1]
		w.Header().Set("Littoral-After", last.Namespace+"/"+last.Name)
	}
	return function.WriteJSON(w, http.StatusOK, objects)
}
