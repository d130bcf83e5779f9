// Package plan shows what submitting a descriptor would change, without changing it.
package plan

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
	Routes: []function.Route{{Pattern: "POST /matchmaker/plan", Role: auth.Viewer, Aliases: []string{"POST /plan"}}},
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

// Handle takes a descriptor and answers the steps; ?app=ID names the application to update, else the only one of that
// name is meant, else a new one. With ?strict=true, the descriptor may have no warnings.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	query := function.NewQuery(r, "app", "strict")
	app, strict := query.ID("app"), query.Bool("strict")
	if err := query.Err(); err != nil {
		return err
	}
	document, err := function.Document(r)
	if err != nil {
		return err
	}
	parsed, err := submission.Read(r.Context(), f.admit, document, strict)
	if err != nil {
		return err
	}
	preview, err := match.DryRun(r.Context(), f.db, document, parsed, app, f.match, f.application.LostAfter)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, preview)
}
