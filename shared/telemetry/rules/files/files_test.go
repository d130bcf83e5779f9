package files_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/telemetry/rules"
	"github.com/littoral-project/littoral/shared/telemetry/rules/files"
	"github.com/littoral-project/littoral/shared/telemetry/rules/rulestest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	rulestest.Run(t, func(t *testing.T) rulestest.Place {
		dir := filepath.Join(t.TempDir(), "rules")
		s, err := files.New(dir, "", nil)
		require.NoError(t, err)
		return rulestest.Place{
			Store: s,
			Count: func() int {
				found, err := os.ReadDir(dir)
				require.NoError(t, err)
				return len(found)
			},
			Stop: func() {
				require.NoError(t, os.RemoveAll(dir))
				require.NoError(t, os.WriteFile(dir, nil, 0o600)) // root ignores permissions, but not this
			},
		}
	})
}

func TestPrometheusReloadsAfterEachChange(t *testing.T) {
	t.Parallel()
	var told atomic.Int32
	var broken atomic.Bool
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || broken.Load() {
			http.Error(w, "error loading rules", http.StatusInternalServerError)
			return
		}
		told.Add(1)
	}))
	defer prometheus.Close()
	s, err := files.New(t.TempDir(), prometheus.URL+"/-/reload", prometheus.Client())
	require.NoError(t, err)
	g := rulestest.Group("shop", "up")
	require.NoError(t, s.Put(t.Context(), g))
	require.NoError(t, s.Put(t.Context(), g), "nothing is written, but an earlier message may have been lost")
	require.NoError(t, s.Delete(t.Context(), rules.ID("shop")))
	require.EqualValues(t, 3, told.Load())

	require.NoError(t, s.Put(t.Context(), g))
	broken.Store(true)
	for range 2 {
		require.Equal(t, problem.Unavailable, problem.KindOf(s.Delete(t.Context(), rules.ID("shop"))), "it still evaluates them")
	}
	broken.Store(false)
	require.Equal(t, problem.NotFound, problem.KindOf(s.Delete(t.Context(), rules.ID("shop"))))
	require.EqualValues(t, 5, told.Load())

	broken.Store(true)
	err = s.Put(t.Context(), g)
	require.Equal(t, problem.Unavailable, problem.KindOf(err))
	require.ErrorContains(t, err, "error loading rules")
	prometheus.Close()
	require.Equal(t, problem.Unavailable, problem.KindOf(s.Put(t.Context(), g)))
}

func TestFilesOfOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := files.New(dir, "", nil)
	require.NoError(t, err)
	for _, name := range []string{"own.yaml", rules.ID("other") + ".yaml", rules.ID("broken") + ".yaml", rules.ID("dir") + ".txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("groups: [{name: theirs, rules: []}]"), 0o600))
	}
	list, err := s.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
	err = s.Delete(t.Context(), "own")
	require.Equal(t, problem.NotFound, problem.KindOf(err))
	require.FileExists(t, filepath.Join(dir, "own.yaml"))
}

// TestAReaderNeverSeesHalfAFile lists while the group is replaced by ever longer ones.
func TestAReaderNeverSeesHalfAFile(t *testing.T) {
	t.Parallel()
	s, err := files.New(t.TempDir(), "", nil)
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), rulestest.Group("shop", "up")))
	done := make(chan error, 1)
	go func() {
		var err error
		for n := range 50 {
			err = errors.Join(err, s.Put(t.Context(), rulestest.Group("shop", "up"+strings.Repeat(" + up", n))))
		}
		done <- err
	}()
	for running := true; running; {
		select {
		case err := <-done:
			require.NoError(t, err)
			running = false
		default:
		}
		list, err := s.List(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1)
	}
}

func TestNew_saysWhatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := files.New("", "", nil)
	require.ErrorContains(t, err, "RULES_DIR")
	_, err = files.New(t.TempDir(), "http://[", nil)
	require.ErrorContains(t, err, "RULES_RELOAD_URL")
}
