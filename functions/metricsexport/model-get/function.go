// Package modelget shows a trained model.
package modelget

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/metricsexport"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{Routes: []function.Route{{Pattern: "GET /metricsexport/models/{model_tag}", Role: auth.Viewer}}}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers how the model came to be and how far it can be trusted.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	m, err := metricsexport.GetModel(r.Context(), f.db, r.PathValue("model_tag"))
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, m)
}
