// Package applist lists CodecoApps with their status.
package applist

import (
	"encoding/json"
	"net/http"

	"github.com/littoral-project/littoral/shared/acm"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/paging"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /acm/apps", Role: auth.Viewer}},
	Class:  function.Medium,
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers a page of CodecoApps, the oldest first; ?namespace= and ?name= narrow it.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	query := function.NewQuery(r, "namespace", "name", "limit", "cursor")
	of, page := acm.Key{Namespace: query.Text("namespace"), Name: query.Text("name")}, query.Page()
	if err := query.Err(); err != nil {
		return err
	}
	apps, err := acm.List(r.Context(), f.db, of, page)
	if err != nil {
		return err
	}
	all, err := acm.StatusesOf(r.Context(), f.db, apps)
	if err != nil {
		return err
	}
	objects := make([]object, len(apps))
	for i, a := range apps {
		if objects[i].fields, err = a.Object(all[i]); err != nil {
			return err
		}
		objects[i].at = paging.Cursor{At: a.Application.CreatedAt, ID: a.Application.ID}
	}
	return function.WritePage(w, r, page, objects, false, func(o object) paging.Cursor { return o.at })
}

// object is a CodecoApp and its place in the list.
type object struct {
	fields map[string]any
	at     paging.Cursor
}

// MarshalJSON writes the CodecoApp alone.
func (o object) MarshalJSON() ([]byte, error) { return json.Marshal(o.fields) }
