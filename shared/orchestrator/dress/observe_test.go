package dress_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/dress"
)

// applied has what was applied last.
type applied struct {
	orchestrator.Orchestrator

	record orchestrator.Record
}

func (a *applied) Apply(_ context.Context, j *job.Job) error {
	a.record = orchestrator.RecordOf(j)
	return nil
}

func (a *applied) Observe(context.Context, *job.Job) (orchestrator.Status, error) {
	return orchestrator.Status{Exists: true, Record: a.record}, nil
}

// TestWhatWasAppliedIsNotOutdated: whoever asks knows the job as it is stored, without what is added.
func TestWhatWasAppliedIsNotOutdated(t *testing.T) {
	t.Parallel()
	j, under := jobOf(t, document), &applied{}
	outdated := func(s dress.Settings) bool {
		status, err := dress.Orchestrator(under, s).Observe(t.Context(), j)
		require.NoError(t, err)
		return status.Outdated(j)
	}
	require.NoError(t, dress.Orchestrator(under, full).Apply(t.Context(), j))
	require.False(t, outdated(full))
	other := full
	other.Key = "another"
	require.True(t, outdated(other), "its Secret has another token now")

	plain := *j
	plain.Instruction.Contents = j.Instruction.Contents[1:]
	require.NoError(t, under.Apply(t.Context(), &plain)) // before the settings were made
	status, err := dress.Orchestrator(under, full).Observe(t.Context(), &plain)
	require.NoError(t, err)
	require.True(t, status.Outdated(&plain))
}
