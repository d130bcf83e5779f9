// Package offer says what this controller could do for an application of another one. Nothing is stored or reserved.
package offer

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/handover"
	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/submission/header"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "POST /controller/offers", Role: auth.Controller}},
	Class:  function.Descriptor, // and ten thousand nodes, with the problem they make
}

// Function is the operation with its settings and store.
type Function struct {
	db    *store.DB
	match match.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, env.Config(&f.match)
}

// Handle takes a descriptor and answers how much of it has a place here, and how good that is.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	document, err := function.Document(r)
	if err != nil {
		return err
	}
	parsed, err := header.Read(document)
	if err != nil {
		return err
	}
	answer, err := match.Solve(r.Context(), f.db, match.Request{Parsed: parsed}, f.match)
	if err != nil {
		return err
	}
	o := handover.Offer{
		Components: len(answer.Plan.Assignments), Placed: answer.Plan.Placed, Score: answer.Plan.ScoreTotal,
		Objective: answer.Plan.Objective, Bound: answer.Plan.Bound,
	}
	for _, p := range answer.Plan.Prices {
		o.Price += p.Points
	}
	for i, as := range answer.Plan.Assignments {
		if !as.Placed {
			o.Missing = append(o.Missing, answer.Explanation.Components[i].Summary)
		}
	}
	return function.WriteJSON(w, http.StatusOK, o)
}
