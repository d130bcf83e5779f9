// Package resourcelist tells the ICOS shell of the infrastructure.
package resourcelist

import (
	"bytes"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icosshell"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /api/v3/resource/{$}", Role: auth.Viewer, Aliases: []string{"GET /api/v3/resource"}}},
	Needs:  []function.Need{function.SignIn}, // refresh tokens are sent as api_key
	Class:  function.Medium,                  // the answer is in memory
}

// Function is the operation with its store.
type Function struct {
	icosshell.Callers

	db *store.DB
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	callers, err := icosshell.NewCallers(env)
	return &Function{callers, env.DB}, err
}

// Handle answers the taxonomy as it was saved last.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	found, err := topology.View{}.Open(r.Context(), f.db)
	if err != nil {
		return err
	}
	var whole bytes.Buffer // an error must be found before the answer begins
	if err := found.Write(r.Context(), &whole); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = whole.WriteTo(w) // the caller has gone if this fails
	return nil
}
