package boot

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDrainer_failsProbesAndServesUntilItIsQuiet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &drainer{inner: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })}
		var connection string // the Connection header of the last answer
		ask := func(agent string) int {
			r := httptest.NewRequest(http.MethodGet, "/things", nil)
			r.Header.Set("User-Agent", agent)
			w := httptest.NewRecorder()
			d.ServeHTTP(w, r)
			connection = w.Header().Get("Connection")
			return w.Code
		}
		require.Equal(t, http.StatusOK, ask("kube-probe/1.35"))
		require.Equal(t, http.StatusTeapot, ask("curl"))
		require.Empty(t, connection)

		begin, done := time.Now(), make(chan time.Time)
		go func() {
			d.drain(5 * time.Second)
			done <- time.Now()
		}()
		time.Sleep(3 * time.Second)
		require.Equal(t, http.StatusServiceUnavailable, ask("kube-probe/1.35"))
		require.Equal(t, http.StatusTeapot, ask("curl"), "the network has not heard yet")
		require.Equal(t, "close", connection, "the next request goes to another instance")
		time.Sleep(4 * time.Second)
		require.Equal(t, http.StatusServiceUnavailable, ask("kube-probe/1.35"), "which is no reason to stay")
		require.Equal(t, 8*time.Second, (<-done).Sub(begin), "five seconds after the last request")
	})
}
