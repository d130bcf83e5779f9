package alertmanager_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/alertmanager/template"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/alertmanager"
	"github.com/littoral-project/littoral/infra/runner/prometheus"
)

// message is the body that the webhook gets.
type message struct {
	template.Data

	Version  string
	GroupKey string
}

// webhook receives messages without a network, so that its tests can run in simulated time.
type webhook struct {
	mu     sync.Mutex
	got    []message
	answer func(*http.Request) (int, error) // nil = 200
}

func (w *webhook) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	answer := w.answer
	w.mu.Unlock()
	code := http.StatusOK
	if answer != nil {
		if code, err = answer(r); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if code == http.StatusOK {
		var m message
		if err := json.Unmarshal(body, &m); err != nil {
			return nil, err
		}
		w.got = append(w.got, m)
	}
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Body: io.NopCloser(&bytes.Buffer{})}, nil
}

// taken returns the messages since the last call.
func (w *webhook) taken() []message {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	got := w.got
	w.got = nil
	return got
}

func start(t *testing.T, w *webhook, file string) *alertmanager.Notifier {
	t.Helper()
	n, err := alertmanager.New(alertmanager.Options{
		Webhook: "http://littoral/webhook", Client: &http.Client{Transport: w, Timeout: 10 * time.Second}, URL: "http://littoral",
		File: file, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	return n
}

// alert returns one that has been firing since began, and is valid for some time.
func alert(began time.Time, name, host string) *prometheus.Alert {
	return &prometheus.Alert{
		Labels:      labels.FromStrings("alertname", name, "host", host),
		Annotations: labels.FromStrings("plm_id", "1", "plm_expr_value", "0.9"),
		StartsAt:    began, EndsAt: time.Now().Add(20 * time.Second), GeneratorURL: "http://littoral/graph",
	}
}

func resolved(a *prometheus.Alert) *prometheus.Alert {
	end := *a
	end.EndsAt = time.Now()
	return &end
}

const (
	shortly = alertmanager.GroupInterval + time.Second
	long    = alertmanager.Repeat + alertmanager.GroupInterval
)

func TestAnAlertFromFiringToResolved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &webhook{}
		n := start(t, w, "")
		a := alert(time.Now(), "cpu", "edge-1")
		n.Send(a)
		time.Sleep(alertmanager.GroupWait)
		got := w.taken()
		require.Len(t, got, 1)
		m := got[0]
		require.Equal(t, []string{"4", `{}:{alertname="cpu"}`, "firing", "littoral", "http://littoral"},
			[]string{m.Version, m.GroupKey, m.Status, m.Receiver, m.ExternalURL})
		require.Len(t, m.Alerts, 1)
		require.Equal(t, template.KV{"alertname": "cpu", "host": "edge-1"}, m.Alerts[0].Labels)
		require.Equal(t, template.KV{"plm_id": "1", "plm_expr_value": "0.9"}, m.Alerts[0].Annotations)
		require.Equal(t, "firing", m.Alerts[0].Status)
		require.True(t, m.Alerts[0].EndsAt.IsZero(), "as Alertmanager has it while an alert fires")
		require.Equal(t, fingerprint, m.Alerts[0].Fingerprint)

		for range 10 { // Prometheus sends it again and again
			n.Send(alert(a.StartsAt, "cpu", "edge-1"))
			time.Sleep(time.Second)
		}
		require.Empty(t, w.taken())

		n.Send(resolved(a))
		time.Sleep(shortly)
		got = w.taken()
		require.Len(t, got, 1)
		require.Equal(t, "resolved", got[0].Status)
		require.Equal(t, "resolved", got[0].Alerts[0].Status)
		require.False(t, got[0].Alerts[0].EndsAt.IsZero())

		time.Sleep(long)
		require.Empty(t, w.taken(), "what is resolved is said once")
		n.Send(alert(time.Now(), "cpu", "edge-1"))
		time.Sleep(shortly)
		require.Len(t, w.taken(), 1, "a new episode")
	})
}

// fingerprint is Alertmanager 0.34's fingerprint of the labels in the test above.
const fingerprint = "af25d9970eb04f4d"

func TestGroups(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &webhook{}
		n := start(t, w, "")
		n.Send(alert(time.Now(), "cpu", "edge-1"), alert(time.Now(), "cpu", "edge-2"), alert(time.Now(), "memory", "edge-1"))
		time.Sleep(time.Second)
		sizes := map[string]int{}
		for _, m := range w.taken() {
			sizes[m.GroupLabels["alertname"]] = len(m.Alerts)
			if m.GroupLabels["alertname"] == "cpu" {
				require.Equal(t, template.KV{"alertname": "cpu"}, m.CommonLabels)
			}
		}
		require.Equal(t, map[string]int{"cpu": 2, "memory": 1}, sizes, "a message for each alert name")
		n.Send(alert(time.Now(), "cpu", "edge-3"))
		time.Sleep(shortly)
		got := w.taken()
		require.Len(t, got, 1)
		require.Len(t, got[0].Alerts, 3, "one more makes the whole group news")
	})
}

func TestWhatFiresForLongIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &webhook{}
		n := start(t, w, "")
		began := time.Now()
		for time.Since(began) < long {
			n.Send(alert(began, "cpu", "edge-1"))
			time.Sleep(5 * time.Second)
		}
		require.Len(t, w.taken(), 2)
	})
}

func TestAnAlertThatNobodyRenewsResolves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &webhook{}
		n := start(t, w, "")
		n.Send(alert(time.Now(), "cpu", "edge-1")) // its rule is removed now
		time.Sleep(time.Minute)
		got := w.taken()
		require.Len(t, got, 2)
		require.Equal(t, "resolved", got[1].Status)
	})
}

func TestWhatEndsBeforeAnyoneWasToldIsNoNews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &webhook{}
		n := start(t, w, "")
		a := alert(time.Now(), "cpu", "edge-1")
		n.Send(a)
		n.Send(resolved(a))
		n.Send(resolved(alert(time.Now(), "memory", "edge-1")))
		time.Sleep(time.Minute)
		require.Empty(t, w.taken())
	})
}

func TestAReceiverThatFailsHearsOfItLater(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(*http.Request) (int, error){
		"it is away":      func(*http.Request) (int, error) { return 0, errors.New("connection refused") },
		"it has a fault":  func(*http.Request) (int, error) { return http.StatusInternalServerError, nil },
		"it is not ready": func(*http.Request) (int, error) { return http.StatusNotFound, nil },
		"it hangs": func(r *http.Request) (int, error) {
			<-r.Context().Done()
			return 0, r.Context().Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &webhook{answer: answer}
				n := start(t, w, "")
				began := time.Now()
				for range 30 {
					before := time.Now()
					n.Send(alert(began, "cpu", "edge-1"), alert(began, "memory", "edge-1"))
					require.Zero(t, time.Since(before), "evaluation never waits")
					time.Sleep(time.Second)
				}
				w.mu.Lock()
				w.answer = nil
				w.mu.Unlock()
				time.Sleep(12 * time.Second) // the attempt that hangs, and the next one
				require.Len(t, w.taken(), 2)
			})
		})
	}
}

func TestARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, file := &webhook{}, filepath.Join(t.TempDir(), "alerts.json")
		n := start(t, w, file)
		began := time.Now()
		n.Send(alert(began, "cpu", "edge-1"), alert(began, "memory", "edge-1"))
		time.Sleep(time.Second)
		require.Len(t, w.taken(), 2)
		require.NoError(t, n.Close())
		n.Send(alert(began, "late", "edge-1")) // nothing listens any more

		n = start(t, w, file)
		for range 30 { // memory recovered meanwhile
			n.Send(alert(began, "cpu", "edge-1"))
			time.Sleep(time.Second)
		}
		got := w.taken()
		require.Len(t, got, 1)
		require.Equal(t, "memory", got[0].GroupLabels["alertname"])
		require.Equal(t, "resolved", got[0].Status)
	})
}

// TestARestart_ofWhatGoesOnFiring: after a restart Prometheus no longer knows when an alert began to fire, and for the
// receiver an alert with a later start is another violation.
func TestARestart_ofWhatGoesOnFiring(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, file := &webhook{}, filepath.Join(t.TempDir(), "alerts.json")
		n := start(t, w, file)
		began := time.Now()
		n.Send(alert(began, "cpu", "edge-1"))
		time.Sleep(time.Second)
		require.Len(t, w.taken(), 1)
		require.NoError(t, n.Close())

		n = start(t, w, file)
		time.Sleep(5 * time.Second)
		anew := time.Now()
		for time.Since(anew) < long {
			n.Send(alert(anew, "cpu", "edge-1"))
			time.Sleep(5 * time.Second)
		}
		n.Send(resolved(alert(anew, "cpu", "edge-1")))
		time.Sleep(shortly)
		got := w.taken()
		require.Len(t, got, 2, "the repeat, and its end")
		for i, status := range []string{"firing", "resolved"} {
			require.Equal(t, status, got[i].Status)
			require.True(t, began.Equal(got[i].Alerts[0].StartsAt), "it began at %s, not at %s", began, got[i].Alerts[0].StartsAt)
		}

		again := time.Now()
		n.Send(alert(again, "cpu", "edge-1"))
		time.Sleep(shortly)
		got = w.taken()
		require.Len(t, got, 1)
		require.True(t, again.Equal(got[0].Alerts[0].StartsAt), "what begins after the end is another episode")
	})
}

// TestARestart_ofARuleThatIsSeldomEvaluated: it sends no notice for longer than others.
func TestARestart_ofARuleThatIsSeldomEvaluated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, file := &webhook{}, filepath.Join(t.TempDir(), "alerts.json")
		n := start(t, w, file)
		slow := func() *prometheus.Alert {
			a := alert(time.Now(), "cpu", "edge-1")
			a.EndsAt = time.Now().Add(2 * time.Minute) // four times its interval
			return a
		}
		n.Send(slow())
		time.Sleep(time.Second)
		require.Len(t, w.taken(), 1)
		require.NoError(t, n.Close())

		n = start(t, w, file)
		time.Sleep(time.Minute)
		n.Send(slow())
		time.Sleep(shortly)
		require.Empty(t, w.taken(), "it has not ended")
		time.Sleep(3 * time.Minute)
		got := w.taken()
		require.Equal(t, "resolved", got[len(got)-1].Status)
	})
}

// TestARestart_afterAVersionThatKeptNoValidity loads its file.
func TestARestart_afterAVersionThatKeptNoValidity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, file := &webhook{}, filepath.Join(t.TempDir(), "alerts.json")
		require.NoError(t, os.WriteFile(file, []byte(`[{"labels": {"alertname": "cpu"}, "annotations": {},
	"startsAt": "2000-01-01T00:00:00Z", "endsAt": "2000-01-01T00:00:20Z", "generatorURL": "http://littoral/graph"}]`), 0o600))
		start(t, w, file)
		time.Sleep(time.Minute)
		got := w.taken()
		require.Len(t, got, 1)
		require.Equal(t, "resolved", got[0].Status)
	})
}

func TestNew_saysWhatIsMissing(t *testing.T) {
	t.Parallel()
	_, err := alertmanager.New(alertmanager.Options{})
	require.ErrorContains(t, err, "webhook")
}
