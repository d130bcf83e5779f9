package job

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/problem"
)

func TestAJobMovesAsTheTableSays(t *testing.T) {
	t.Parallel()
	for _, row := range transitions {
		require.NotEmpty(t, row.what, row.move)
		require.Equal(t, row, transitionOf(row.move), "one row for each move")
		for _, state := range append(newborn, anyState...) {
			j := &Job{State: state}
			from, err := j.move(row.move)
			require.Equal(t, state, from)
			if err != nil {
				require.Equal(t, problem.Conflict, problem.KindOf(err))
				require.Equal(t, state, j.State)
			}
			require.Equal(t, err == nil, row.leads(state, j.State), "%s from %q", row.move, state)
		}
	}
	_, err := (&Job{State: Created}).move("improved")
	require.Error(t, err)
}

// TestNothingIsSavedThatTheTableDoesNotAllow: whoever assigns a state by himself is caught where it is stored.
func TestNothingIsSavedThatTheTableDoesNotAllow(t *testing.T) {
	t.Parallel()
	j := &Job{State: Finished}
	require.ErrorContains(t, j.record(t.Context(), nil, Promote, Created, ""), "does not lead")
	require.ErrorContains(t, j.record(t.Context(), nil, "improved", Finished, ""), "does not lead")
}

// TestOnlyTheTableAssignsAState: such an assignment would be refused when it is stored.
func TestOnlyTheTableAssignsAState(t *testing.T) {
	t.Parallel()
	assigns := regexp.MustCompile(`\b[jc]\.State\b[^=!<>\n]*[^=!<>:]=[^=]`)
	require.Regexp(t, assigns, "	j.Type, j.State = Create, Created")
	require.NotRegexp(t, assigns, "	if j.State == Created {")
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		if file == "transitions.go" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Empty(t, assigns.FindString(string(text)), file)
	}
}

func TestThePageShowsTheTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/states.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "```mermaid\n"+Drawing()+"```\n", "run make generate")
	require.Contains(t, string(page), Moves(), "run make generate")
}

// TestWhoReadsHistoryKnowsTheMovesByTheirNames in package recorded.
func TestWhoReadsHistoryKnowsTheMovesByTheirNames(t *testing.T) {
	t.Parallel()
	for move, name := range map[Move]string{
		Submit: recorded.JobSubmitted, CleanUp: recorded.JobCleanup, Wait: recorded.JobWaiting, Place: recorded.JobPlaced,
		Promote: recorded.JobPromoted, TakeOver: recorded.JobTakenOver, Adopt: recorded.JobAdopted, Progress: recorded.JobProgressing,
		Finish: recorded.JobFinished, Stop: recorded.JobStopped,
	} {
		require.Equal(t, name, move.Event())
	}
}
