// Package modelshow lists the trained models as ICOS does.
package modelshow

import (
	"net/http"
	"strconv"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/metricsexport"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function. It changes nothing, though ICOS asks by POST.
var Spec = function.Spec{
	Routes: []function.Route{{
		Pattern: "POST /metricsexport/show_models", Role: auth.Viewer, Aliases: []string{"POST /show_models"},
	}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the number of models, and their names by version.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Model string `json:"model"`
	}
	if err := function.DecodeJSON(r, &body); err != nil {
		return err
	}
	list, err := metricsexport.ListModels(r.Context(), f.db, body.Model)
	if err != nil {
		return err
	}
	names := map[string]string{}
	for _, m := range list {
		version := strconv.Itoa(m.Version)
		if body.Model == "" || body.Model == "all" { // versions of several names are the same
			version = m.Tag
		}
		names[version] = m.Name
	}
	return function.WriteJSON(w, http.StatusOK, map[string]any{"models_count": len(list), "models_list": names})
}
