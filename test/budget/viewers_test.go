package budget_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/issuer"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/images"
)

// TestOneInstanceShowsWhatHappensTo200Viewers: everybody is told of a change, each to their own open answer, and the process
// that tells them stays small.
func TestOneInstanceShowsWhatHappensTo200Viewers(t *testing.T) {
	const viewers, most = 200, 64 // MiB
	programs, err := images.Build(t.Context(), t.TempDir(), func(name string) bool { return name == "events-stream" })
	require.NoError(t, err)
	require.Len(t, programs, 1)
	var provider *issuer.Issuer
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { provider.Handler().ServeHTTP(w, r) }))
	t.Cleanup(at.Close)
	provider, err = issuer.New(issuer.Options{URL: at.URL + "/oidc", Dir: t.TempDir(), Audience: "littoral", Clients: issuer.People()})
	require.NoError(t, err)
	token, _, err := provider.Token(t.Context(), "viewer")
	require.NoError(t, err)

	database := storetest.URL(t)
	p := start(t, programs["events-stream"], database, "OIDC_ISSUER="+at.URL+"/oidc")
	open := make([]*bufio.Scanner, viewers)
	for i := range open {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/events/stream", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		t.Cleanup(func() { _ = answer.Body.Close() })
		require.Equal(t, http.StatusOK, answer.StatusCode)
		open[i] = bufio.NewScanner(answer.Body)
		await(t, open[i], "event: opened")
	}
	db, err := store.Open(t.Context(), store.Config{DatabaseURL: database}, &storetest.Recorder{}, nil)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	for range 20 {
		require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			return history.Record(ctx, tx, history.Entry{Event: "job.placed", Message: strings.Repeat("on a/b, ", 50)})
		}))
		for _, viewer := range open {
			await(t, viewer, "event: job.placed")
		}
	}
	held := images.Resident(p.pid)
	t.Logf("%d viewers: %.1f of %d MiB of memory", viewers, held, most)
	require.Positive(t, held, "%s", p.log)
	require.LessOrEqual(t, held, float64(most))
}

// await reads a stream to a line.
func await(t *testing.T, stream *bufio.Scanner, line string) {
	t.Helper()
	for stream.Scan() {
		if stream.Text() == line {
			return
		}
	}
	require.Fail(t, "the stream has ended", "%v, before %s", stream.Err(), line)
}
