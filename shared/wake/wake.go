// Package wake starts the functions that an event will need before the event reaches them. Otherwise a chain of
// sleeping functions would wait for one cold start after the other.
//
// Whoever begins a chain calls the health path of each function further down, all at once and before anything else: the
// gateway when it passes on a request, or else the operation as soon as it runs. Knative starts an instance for that as
// for any request, and the instance dials its store, so that the event finds it ready. This is only an attempt: a
// function that is not woken here is woken by its event, as usual.
//
// Callers are not authenticated first, since that takes time. A stranger can keep functions awake this way, as he can
// by calling them; he wakes no others than that, and each only once in a while.
package wake

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
)

// Config is read from the environment by envconfig.
type Config struct {
	On        bool   `envconfig:"PREWAKE" default:"true"` // where functions sleep, see Service
	Chain     string `envconfig:"PREWAKE_CHAIN"`          // of the Service's YAML, see parse
	URL       string `envconfig:"PREWAKE_URL" default:"http://{name}.{namespace}.svc.cluster.local"`
	Namespace string `envconfig:"PREWAKE_NAMESPACE"` // "" = that of the instance, by its resolver
	Service   string `envconfig:"K_SERVICE"`         // set by Knative; without it nothing sleeps and nothing is woken

	// Every is the least time between two probes of one function: it stays awake longer than that.
	Every time.Duration `envconfig:"PREWAKE_EVERY" default:"20s"`
}

const (
	atOnce   = 16               // probes under way
	patience = 30 * time.Second // with one of them: a cold start on a busy node

	// resolver of a pod: it looks for names in the pod's namespace first. Few instances have a token of Kubernetes, so
	// the namespace that lies beside one is no help.
	resolver = "/etc/resolv.conf"
)

// Waker wakes functions. Safe for concurrent use; a nil one does nothing.
type Waker struct {
	chain  map[string][]link // by event type
	url    string            // with {name} in it
	every  time.Duration
	client *http.Client
	log    *slog.Logger
	slots  chan struct{}

	mu   sync.Mutex
	last map[string]time.Time // probe of a function
}

// New returns a Waker, or nil when there is nobody to wake: it is switched off, not in a cluster, or starts no chain.
func New(c Config, log *slog.Logger) *Waker {
	chain := parse(c.Chain)
	if !c.On || c.Service == "" || len(chain) == 0 {
		return nil
	}
	url := c.URL
	if strings.Contains(url, "{namespace}") {
		namespace := c.Namespace
		if namespace == "" {
			text, _ := os.ReadFile(resolver)
			namespace = namespaceIn(string(text))
		}
		if namespace == "" {
			log.Warn("functions are not woken ahead: PREWAKE_NAMESPACE is not set, and the namespace is not known")
			return nil
		}
		url = strings.ReplaceAll(url, "{namespace}", namespace)
	}
	return &Waker{
		chain: chain, url: strings.TrimSuffix(url, "/") + function.HealthPath, every: c.Every, log: log,
		client: &http.Client{Timeout: patience}, slots: make(chan struct{}, atOnce), last: map[string]time.Time{},
	}
}

// namespaceIn returns the pod's namespace from its resolv.conf; "" when that is not a pod's.
func namespaceIn(text string) string {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != "search" {
			continue
		}
		for _, domain := range words[1:] {
			if namespace, rest, _ := strings.Cut(domain, "."); strings.HasPrefix(rest, "svc.") {
				return namespace
			}
		}
	}
	return ""
}

// link is who an event leads to that has these attributes.
type link struct {
	attributes map[string]string
	names      []string
}

// parse reads "type=function,function;type?name=value&name=value=function": a link each, with the
// attributes that an event must have besides its type.
func parse(text string) map[string][]link {
	chain := map[string][]link{}
	for part := range strings.SplitSeq(text, ";") {
		at := max(strings.LastIndexByte(part, '='), 0)
		typ, condition, _ := strings.Cut(part[:at], "?")
		l := link{attributes: map[string]string{}}
		unnamed := func(name string) bool { return name == "" }
		if l.names = slices.DeleteFunc(strings.Split(part[min(at+1, len(part)):], ","), unnamed); len(l.names) == 0 {
			continue
		}
		for pair := range strings.SplitSeq(condition, "&") {
			if name, value, found := strings.Cut(pair, "="); found {
				l.attributes[name] = value
			}
		}
		chain[typ] = append(chain[typ], l)
	}
	return chain
}

// Handler returns one that wakes whoever events of the types will need with each call that next is given.
func (w *Waker) Handler(next http.Handler, types ...string) http.Handler {
	if w == nil || len(types) == 0 {
		return next
	}
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path != function.HealthPath { // a call for its own sake
			w.Event(types...)
		}
		next.ServeHTTP(out, r)
	})
}

// Event wakes whoever an event of one of the types may need, in the background: it returns at once.
func (w *Waker) Event(types ...string) {
	if w == nil {
		return
	}
	for _, typ := range types {
		for _, l := range w.chain[typ] {
			w.wake(l.names)
		}
	}
}

// wanted reports whether an event has the attributes of the link.
func (l link) wanted(e *cloudevents.Event) bool {
	for name, value := range l.attributes {
		if fmt.Sprint(e.Extensions()[name]) != value {
			return false
		}
	}
	return true
}

func (w *Waker) wake(names []string) {
	for _, name := range names {
		w.wakeOne(name)
	}
}

func (w *Waker) wakeOne(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if before, known := w.last[name]; known && time.Since(before) < w.every {
		return
	}
	select {
	case w.slots <- struct{}{}:
	default:
		return // enough is under way; its event will wake it
	}
	w.last[name] = time.Now()
	go func() {
		defer func() { <-w.slots }()
		if err := w.probe(name); err != nil {
			w.log.Debug("not woken ahead", "function", name, "error", err.Error())
			w.mu.Lock()
			delete(w.last, name)
			w.mu.Unlock()
		}
	}()
}

func (w *Waker) probe(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.ReplaceAll(w.url, "{name}", name), http.NoBody)
	if err != nil {
		return err
	}
	r.Header.Set("User-Agent", function.WakeAgent) // nor a header of a probe: those Knative answers by itself
	resp, err := w.client.Do(r)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 4096))
	return resp.Body.Close()
}

// Publisher returns one that wakes whoever the event will need while next hands it to the Broker.
func (w *Waker) Publisher(next events.Publisher) events.Publisher {
	if w == nil {
		return next
	}
	return publisher{w, next}
}

type publisher struct {
	waker *Waker
	next  events.Publisher
}

// Publish implements events.Publisher.
func (p publisher) Publish(ctx context.Context, e cloudevents.Event) error {
	for _, l := range p.waker.chain[e.Type()] {
		if l.wanted(&e) {
			p.waker.wake(l.names)
		}
	}
	return p.next.Publish(ctx, e)
}
