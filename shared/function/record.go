package function

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/store"
)

// Most operations are about one record that the path names. These three are their whole Handle: what remains of the
// function is its declaration and the step itself.

// Show answers 200 with the record whose id stands in the path parameter.
func Show[T any](
	w http.ResponseWriter, r *http.Request, db *store.DB, param string,
	get func(context.Context, store.Querier, uuid.UUID) (T, error),
) error {
	id, err := PathID(r, param)
	if err != nil {
		return err
	}
	record, err := get(r.Context(), db, id)
	if err != nil {
		return err
	}
	return WriteJSON(w, http.StatusOK, record)
}

// Change takes a step on the record in one transaction and answers 200 with what the record is after it.
func Change[T any](
	w http.ResponseWriter, r *http.Request, db *store.DB, param string,
	step func(context.Context, *store.Tx, uuid.UUID) (T, error),
) error {
	var record T
	err := change(r, db, param, func(ctx context.Context, tx *store.Tx, id uuid.UUID) (err error) {
		record, err = step(ctx, tx, id)
		return err
	})
	if err != nil {
		return err
	}
	return WriteJSON(w, http.StatusOK, record)
}

// Act takes a step on the record in one transaction and answers 204.
func Act(
	w http.ResponseWriter, r *http.Request, db *store.DB, param string,
	step func(context.Context, *store.Tx, uuid.UUID) error,
) error {
	if err := change(r, db, param, step); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func change(r *http.Request, db *store.DB, param string, step func(context.Context, *store.Tx, uuid.UUID) error) error {
	id, err := PathID(r, param)
	if err != nil {
		return err
	}
	return db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error { return step(ctx, tx, id) })
}
