package wake_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/wake"
)

// sleepers stands for all functions and counts their probes by name.
type sleepers struct {
	*httptest.Server

	mu     sync.Mutex
	probes map[string]int
	strays []string
	hold   chan struct{} // unless nil, answers wait for it
	refuse bool          // answers fail
}

func newSleepers(t *testing.T, hold chan struct{}) *sleepers {
	t.Helper()
	s := &sleepers{probes: map[string]int{}, hold: hold}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		s.mu.Lock()
		s.probes[name]++
		if r.Method != http.MethodGet || "/"+path != function.HealthPath || r.Header.Get("K-Network-Probe") != "" ||
			r.UserAgent() != function.WakeAgent {
			s.strays = append(s.strays, r.Method+" "+r.URL.Path)
		}
		refuse := s.refuse
		s.mu.Unlock()
		if refuse {
			panic(http.ErrAbortHandler)
		}
		if s.hold != nil {
			<-s.hold
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *sleepers) config(chain string) wake.Config {
	return wake.Config{On: true, Service: "f", Chain: chain, URL: s.URL + "/{name}", Every: time.Hour}
}

func (s *sleepers) counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]int{}
	for name, n := range s.probes {
		counts[name] = n
	}
	return counts
}

func (s *sleepers) become(t *testing.T, want map[string]int) {
	t.Helper()
	same := func() bool { return fmt.Sprint(s.counts()) == fmt.Sprint(want) }
	require.Eventually(t, same, 10*time.Second, time.Millisecond,
		"want %v, have %v", want, s.counts())
	require.Empty(t, s.strays)
}

var quiet = slog.New(slog.DiscardHandler)

func TestEachFunctionOfTheChainIsAskedOnce(t *testing.T) {
	t.Parallel()
	s := newSleepers(t, nil)
	w := wake.New(s.config("submitted=place,follow;stopped=place,deploy"), quiet)
	w.Event("other")
	for range 100 {
		w.Event("submitted")
	}
	s.become(t, map[string]int{"place": 1, "follow": 1})
	w.Event("stopped", "submitted")
	s.become(t, map[string]int{"place": 1, "follow": 1, "deploy": 1})
}

func TestAFunctionMayHaveGoneToSleepAgain(t *testing.T) {
	t.Parallel()
	s := newSleepers(t, nil)
	c := s.config("submitted=place")
	c.Every = time.Nanosecond
	w := wake.New(c, quiet)
	w.Event("submitted")
	s.become(t, map[string]int{"place": 1})
	w.Event("submitted")
	s.become(t, map[string]int{"place": 2})
}

// names returns the names of that many functions.
func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint("f", i)
	}
	return all
}

func TestNobodyWaitsForAProbe(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	s := newSleepers(t, hold)
	all := names(50)
	w := wake.New(s.config("submitted="+strings.Join(all, ",")), quiet)
	w.Event("submitted") // returns while no probe has been answered
	require.Eventually(t, func() bool { return len(s.counts()) == 16 }, 10*time.Second, time.Millisecond)
	w.Event("submitted")
	require.Len(t, s.counts(), 16, "no more than that at once")
	close(hold)
	require.Eventually(t, func() bool { // the rest at a later occasion
		w.Event("submitted")
		return len(s.counts()) == len(all)
	}, 10*time.Second, time.Millisecond)
	for name, n := range s.counts() {
		require.Equal(t, 1, n, name)
	}
}

// inner is a Broker that refuses or accepts.
type inner struct{ err error }

func (p inner) Publish(context.Context, cloudevents.Event) error { return p.err }

func TestAPublishedEventWakes(t *testing.T) {
	t.Parallel()
	s := newSleepers(t, nil)
	w := wake.New(s.config(events.ApplicationSubmitted+"=place"), quiet)
	e := cloudevents.New()
	e.SetType(events.ApplicationSubmitted)
	require.NoError(t, w.Publisher(inner{}).Publish(t.Context(), e))
	s.become(t, map[string]int{"place": 1})
	broken := errors.New("away")
	require.ErrorIs(t, w.Publisher(inner{broken}).Publish(t.Context(), e), broken)
}

// TestAnEventWakesOnlyWhoTakesIt: before it is known, everyone who may take it is woken.
func TestAnEventWakesOnlyWhoTakesIt(t *testing.T) {
	t.Parallel()
	const chain = events.JobReady + "?jobtype=Create&orchestrator=ocm=deploy-ocm;" + events.JobReady +
		"?orchestrator=kubernetes=deploy-kubernetes;" + events.JobReady + "=count"
	s := newSleepers(t, nil)
	w := wake.New(s.config(chain), quiet)
	e := cloudevents.New()
	e.SetType(events.JobReady)
	e.SetExtension("orchestrator", "ocm")
	require.NoError(t, w.Publisher(inner{}).Publish(t.Context(), e))
	s.become(t, map[string]int{"count": 1})
	e.SetExtension("jobtype", "Create")
	require.NoError(t, w.Publisher(inner{}).Publish(t.Context(), e))
	s.become(t, map[string]int{"count": 1, "deploy-ocm": 1})
	w.Event(events.JobReady)
	s.become(t, map[string]int{"count": 1, "deploy-ocm": 1, "deploy-kubernetes": 1})
}

// A function that could not be asked may be asleep, so the next occasion is used however soon it comes.
func TestAProbeThatFailsIsMadeAgain(t *testing.T) {
	t.Parallel()
	s := newSleepers(t, nil)
	s.refuse = true
	w := wake.New(s.config("submitted=place"), quiet)
	w.Event("submitted")
	require.Eventually(t, func() bool {
		w.Event("submitted")
		return s.counts()["place"] > 1
	}, 10*time.Second, time.Millisecond)
}

func TestOffUnlessFunctionsSleep(t *testing.T) {
	t.Parallel()
	whole := wake.Config{
		On: true, Service: "f", Chain: "submitted=place", URL: "http://{name}.{namespace}", Namespace: "n",
	}
	require.NotNil(t, wake.New(whole, quiet))
	for name, change := range map[string]func(*wake.Config){
		"switched off":              func(c *wake.Config) { c.On = false },
		"not under Knative":         func(c *wake.Config) { c.Service = "" },
		"the beginning of no chain": func(c *wake.Config) { c.Chain = "" },
	} {
		c := whole
		change(&c)
		w := wake.New(c, quiet)
		require.Nil(t, w, name)
		w.Event("submitted")
		require.Equal(t, inner{}, w.Publisher(inner{}))
	}
}

// Few functions have a Kubernetes token with its namespace file, but every one has a resolver configuration.
func TestTheNamespaceIsThatOfTheResolver(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"nameserver 10.43.0.10\nsearch littoral.svc.cluster.local svc.cluster.local cluster.local lan\noptions ndots:5\n": "littoral",
		"search lan edge.svc.example.org svc.example.org\n":                                                               "edge",
		"search lan example.org\n":                     "",
		"nameserver 1.1.1.1\n# search a.svc.example\n": "",
		"": "",
	} {
		require.Equal(t, want, wake.NamespaceIn(text), text)
	}
}

// A call wakes the functions that it will need before anything else, even before the caller is known.
func TestACallWakes(t *testing.T) {
	t.Parallel()
	s := newSleepers(t, nil)
	w := wake.New(s.config("submitted=place,deploy"), quiet)
	calls := 0
	next := http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		calls++
		if r.URL.Path == "/groups" {
			s.become(t, map[string]int{"place": 1, "deploy": 1})
		}
		out.WriteHeader(http.StatusUnauthorized)
	})
	h := w.Handler(next, "submitted")
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/groups", nil))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/groups", nil))
	require.Equal(t, 2, calls)
}

// A function that is only woken wakes no others. Those would use up all concurrent probes while none of them answers.
func TestACallForItsOwnSakeWakesNobody(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	defer close(hold)
	s := newSleepers(t, hold)
	w := wake.New(s.config("submitted="+strings.Join(names(16), ",")+";stopped=place"), quiet)
	h := w.Handler(http.NotFoundHandler(), "submitted")
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, function.HealthPath, nil))
	w.Event("stopped")
	s.become(t, map[string]int{"place": 1})
}
