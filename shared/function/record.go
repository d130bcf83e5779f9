package function

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/store"
)

// Most operations are about one record that the path names. Show, Change and Act are the whole Handle of such a function;
// what remains in its folder is the declaration and the step itself.

// As returns a step whose result is in the form that is answered.
func As[By, T, U any](
	step func(context.Context, By, uuid.UUID) (T, error), form func(T) U,
) func(context.Context, By, uuid.UUID) (U, error) {
	return func(ctx context.Context, by By, id uuid.UUID) (answer U, err error) {
		record, err := step(ctx, by, id)
		if err != nil {
			return answer, err
		}
		return form(record), nil
	}
}

// Show answers 200 with the record that the path parameter names.
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

// Change runs step on the record in one transaction and answers 200 with the record after it.
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

// Act runs step on the record in one transaction and answers 204.
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
