// Package matchmake answers where the components of a descriptor would run, as ICOS asks it.
package matchmake

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/submission/header"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{
		{Pattern: "POST /matchmake", Role: auth.Viewer, Aliases: []string{"POST /matchmaker/matchmake"}},
	},
	Class: function.Descriptor, // and ten thousand nodes, with the problem they make
}

// Function is the operation with its settings and store.
type Function struct {
	db     *store.DB
	config config
}

type config struct {
	match.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, env.Config(&f.config)
}

// Handle takes a descriptor (YAML), or JSON with the present placement and violations, and answers its components with
// targets; an empty list where nothing fits. Nothing is stored or reserved.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	body, err := function.Document(r)
	if err != nil {
		return err
	}
	request, err := match.ParseRequest(body)
	if err != nil {
		return err
	}
	if request.Parsed, err = header.Read([]byte(request.Descriptor)); err != nil {
		return err
	}
	answer, err := match.Solve(r.Context(), f.db, request, f.config.Settings)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, struct {
		Components []map[string]any `json:"components"`
		Warnings   []string         `json:"warnings,omitempty"` // ours, not in ICOS
	}{answer.Components(), answer.Warnings})
}
