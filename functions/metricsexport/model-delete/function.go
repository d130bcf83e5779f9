// Package modeldelete removes a trained model.
package modeldelete

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/metricsexport"
	"github.com/littoral-project/littoral/shared/objects/open"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{
		Pattern: "POST /metricsexport/remove_model", Role: auth.Operator, Aliases: []string{"POST /remove_model"},
	}},
	Needs: []function.Need{function.Objects},
}

// Function is the operation with its store and the models.
type Function struct {
	db     *store.DB
	models metricsexport.Models
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	var c open.Config
	if err := env.Config(&c); err != nil {
		return nil, err
	}
	objects, err := open.Store(c, env.HTTP)
	return &Function{env.DB, metricsexport.NewModels(objects)}, err
}

// Handle answers which version was removed, as ICOS does.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Tag string `json:"model_tag"`
	}
	if err := function.DecodeJSON(r, &body); err != nil {
		return err
	}
	if body.Tag == "" {
		var faults problem.Faults
		faults.Add("model_tag", 0, "is missing")
		return faults.Err("no model is named")
	}
	m, err := f.models.Remove(r.Context(), f.db, body.Tag)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, map[string]any{"Removed_model": map[string]any{"name": m.Name, "version": m.Version}})
}
