// Package serve is how the operations on CodecoApps answer.
package serve

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/acm"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
)

// Key returns the name in the path.
func Key(r *http.Request) acm.Key {
	return acm.Key{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
}

// Answer writes the CodecoApp with its status.
func Answer(w http.ResponseWriter, r *http.Request, q store.Querier, status int, app *acm.App) error {
	s, err := acm.StatusOf(r.Context(), q, app.Application)
	if err != nil {
		return err
	}
	object, err := app.Object(s)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, status, object)
}
