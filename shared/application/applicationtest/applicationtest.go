// Package applicationtest stores applications and places their jobs, for tests that start from there.
package applicationtest

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/store"
)

// Submit stores the application of the descriptor.
func Submit(t testing.TB, db *store.DB, descriptor string) (a *application.Application) {
	t.Helper()
	in := application.Submission{Document: []byte(descriptor), LostAfter: time.Minute}
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		a, _, err = application.Submit(ctx, tx, in)
		return err
	}))
	return a
}

// Place decides where the application's jobs run: the first at the first of the targets, and so on.
func Place(t testing.TB, db *store.DB, id uuid.UUID, targets ...job.Target) {
	t.Helper()
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		a, err := application.Lock(ctx, tx, id)
		if err != nil {
			return err
		}
		for i, to := range targets {
			if err := a.Jobs[i].Place(ctx, tx, to, "for the test"); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Job returns the first job of the application that does not clean up after another.
func Job(t testing.TB, db *store.DB, id uuid.UUID) *job.Job {
	t.Helper()
	jobs, err := job.OfApplications(t.Context(), db, id)
	require.NoError(t, err)
	for _, j := range jobs {
		if j.Cleans == nil {
			return j
		}
	}
	require.Fail(t, "no job")
	return nil
}
