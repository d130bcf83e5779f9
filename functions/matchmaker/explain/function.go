// Package explain says why each component would run, or runs, where it does, and why nowhere else.
package explain

import (
	"errors"
	"net/http"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/policy/admit"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/submission"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "POST /matchmaker/explain", Role: auth.Viewer, Aliases: []string{"POST /explain"}}},
	Class:  function.Descriptor, // and ten thousand nodes, with the problem they make
}

// Function is the operation with its settings and store.
type Function struct {
	db     *store.DB
	config config
	admit  admit.Settings
}

type config struct {
	match.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, errors.Join(env.Config(&f.config), env.Config(&f.admit))
}

// Handle explains a descriptor, in the forms that matchmake takes, or with ?app=ID the stored application.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	query := function.NewQuery(r, "app")
	app := query.ID("app")
	if err := query.Err(); err != nil {
		return err
	}
	answer, err := f.answer(r, app)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, answer)
}

func (f *Function) answer(r *http.Request, app *uuid.UUID) (*match.Answer, error) {
	if app != nil {
		return match.Explain(r.Context(), f.db, *app, f.config.Settings)
	}
	body, err := function.Document(r)
	if err != nil {
		return nil, err
	}
	request, err := match.ParseRequest(body)
	if err != nil {
		return nil, err
	}
	request.Parsed, err = submission.ReadQuestion(r.Context(), f.admit, []byte(request.Descriptor))
	if err != nil {
		return nil, err
	}
	return match.Solve(r.Context(), f.db, request, f.config.Settings)
}
