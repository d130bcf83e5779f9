// Package publish takes events about entities and relations of the metadata graph.
package publish

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/mdm/schema"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:  []function.Route{{Pattern: "POST /mdm/publish/event", Role: auth.Operator, Aliases: []string{"POST /publish/event"}}},
	Class:   function.Large,
	MaxBody: 4 << 20,
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle applies one event, or a list of them in its order, and answers how many there were and how many changed anything.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	body, err := function.Body(r)
	if err != nil {
		return err
	}
	outcome, err := f.publish(r.Context(), body)
	if err != nil {
		if noted := mdm.Refused(r.Context(), f.db, body, err); noted != nil {
			return noted
		}
		return err
	}
	return function.WriteJSON(w, http.StatusOK, outcome)
}

func (f *Function) publish(ctx context.Context, body []byte) (outcome mdm.Outcome, err error) {
	changes, err := mdm.Parse(body)
	if err != nil {
		return outcome, err
	}
	err = f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		schemas, err := mdm.SchemasOf(ctx, tx, changes)
		if err != nil {
			return err
		}
		if err := schema.Validate(changes, schemas); err != nil {
			return err
		}
		outcome, err = mdm.Publish(ctx, tx, changes)
		return err
	})
	return outcome, err
}
