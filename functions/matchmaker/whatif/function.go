// Package whatif says what would happen, without changing anything: which components would move, which would lose their
// place, and what would be left.
package whatif

import (
	"errors"
	"net/http"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/policy/admit"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/submission"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "POST /matchmaker/whatif", Role: auth.Viewer}},
	Class:  function.Descriptor, // and ten thousand nodes, with the problem they make
}

// Function is the operation with its settings and store.
type Function struct {
	db          *store.DB
	match       match.Settings
	application application.Settings
	admit       admit.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, errors.Join(env.Config(&f.match), env.Config(&f.application), env.Config(&f.admit))
}

// Handle takes nodes to drain, clusters to cut off, readings to set and a descriptor to hand in, in any combination.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	if err := function.NewQuery(r).Err(); err != nil {
		return err
	}
	var q match.Question
	if err := function.DecodeJSON(r, &q); err != nil {
		return err
	}
	if q.Descriptor != "" {
		var err error
		if q.Parsed, err = submission.Read(r.Context(), f.admit, []byte(q.Descriptor), false); err != nil {
			return err
		}
	}
	out, err := match.WhatIf(r.Context(), f.db, q, f.match, f.application.LostAfter)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, out)
}
