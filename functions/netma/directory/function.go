// Package directory says what is exposed by ALTO (RFC 7285): an information resource directory.
package directory

import (
	"net/http"
	"time"

	"github.com/littoral-project/littoral/shared/alto"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/netma/exposure"
	"github.com/littoral-project/littoral/shared/netma/view"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /alto", Role: auth.Viewer}},
	Class:  function.Large,
}

// Function is the operation with its store, and the network as it was read last: what is foreseen of it is asked for by calendars.
type Function struct {
	db   *store.DB
	view view.Cache
}

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers the directory.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	if err := exposure.Check(r, "", alto.Directory); err != nil {
		return err
	}
	v, err := f.view.Get(r.Context(), f.db)
	if err != nil {
		return err
	}
	return alto.WriteJSON(w, alto.Directory, exposure.Directory(v.Calendar(time.Now())))
}
