// Package policylist lists policies with their status.
package policylist

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icoswire/policyread"
	"github.com/littoral-project/littoral/shared/paging"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{
		Pattern: "GET /polman/registry/api/v1/policies", Role: auth.Viewer,
		Aliases: []string{
			"GET /registry/api/v1/policies",
			"GET /polman/registry/api/v1/policies/{$}",
			"GET /registry/api/v1/policies/{$}",
		},
	}},
	Class: function.Medium, // a page's policies are in memory several times
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers a page of policies, oldest first.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	q := function.NewQuery(r, "app", "subject", "phase", "name", "search", "limit", "cursor")
	filter := policies.Filter{
		App: q.Text("app"), Subject: q.Text("subject"), Phase: q.OneOf("phase", policies.Phases()...), Name: q.Text("name"),
		Search: q.Text("search"),
	}
	page := q.Page()
	if err := q.Err(); err != nil {
		return err
	}
	list, cut, err := policies.List(r.Context(), f.db, filter, page)
	if err != nil {
		return err
	}
	return function.WritePage(w, r, page, policyread.ListOf(list), cut, func(p *policyread.Answer) paging.Cursor {
		return paging.Cursor{At: p.CreatedAt, ID: uuid.MustParse(p.ID)}
	})
}
