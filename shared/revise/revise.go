// Package revise serves the operations that give an application another descriptor, and with it a new revision: its
// update, an edit of one field, the way back to a former one.
package revise

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/etag"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icoswire/jobgroup"
	"github.com/littoral-project/littoral/shared/policy/admit"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/submission"
)

// Operation is what such an operation needs: its settings and store.
type Operation struct {
	DB *store.DB

	settings application.Settings
	admit    admit.Settings
}

// New reads the settings.
func New(env *function.Env) (Operation, error) {
	o := Operation{DB: env.DB}
	return o, errors.Join(env.Config(&o.settings), env.Config(&o.admit))
}

// Parser reads descriptors as they are handed in; with strict, they may have no warnings.
func (o *Operation) Parser(ctx context.Context, strict bool) application.Parser {
	return func(document []byte) (*appmodel.Application, error) {
		return submission.Read(ctx, o.admit, document, strict)
	}
}

// Change is a change of an application. It is read before any transaction, since that holds a connection.
type Change interface {
	Put(ctx context.Context, tx *store.Tx, author string, seen etag.Match, lostAfter time.Duration) (*application.Application, error)
}

// Put carries the change out as the caller's, and answers the JobGroup after it.
func (o *Operation) Put(w http.ResponseWriter, r *http.Request, c Change, seen etag.Match) error {
	var app *application.Application
	err := o.DB.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		app, err = c.Put(ctx, tx, auth.From(ctx).Subject, seen, o.settings.LostAfter)
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, jobgroup.Of(app))
}

// Edit is Put of what edit makes of the present descriptor. With If-Match, the application must be in a version that the
// header names.
func (o *Operation) Edit(
	w http.ResponseWriter, r *http.Request, id uuid.UUID,
	edit func(document []byte, app *appmodel.Application) ([]byte, error),
) error {
	seen, err := function.IfMatch(r)
	if err != nil {
		return err
	}
	prepared, err := application.ReadEdit(r.Context(), o.DB, id, o.Parser(r.Context(), false), edit)
	if err != nil {
		return err
	}
	return o.Put(w, r, prepared, seen)
}
