package faults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/boot"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/test/kubeapi"
)

const (
	envChild       = "LITTORAL_FAULTS_CHILD"       // set in the process that hosts the functions
	envAPIs        = "LITTORAL_FAULTS_APIS"        // API servers to deploy to or through, JSON {name: address}; "" = agents poll
	envKubeconfigs = "LITTORAL_FAULTS_KUBECONFIGS" // the directory for their kubeconfigs, each named after its server
)

// nuvlaAPI is the name of the one API that is not of a cluster.
const nuvlaAPI = "nuvla"

// boundaries counts the points between two effects and kills the process at one of them, like kill -9: no deferred
// function runs, no buffer is flushed, and the process rolls back no transaction.
type boundaries struct {
	mu     sync.Mutex
	passed int // since the step began
	killAt int // 0 = never
}

// begin starts to count anew, for a step that is to end at one of its boundaries.
func (b *boundaries) begin(killAt int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.passed, b.killAt = 0, killAt
}

func (b *boundaries) pass() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.passed++
	if b.passed == b.killAt {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way; nothing may happen any more
	}
}

// TraceQueryStart is the boundary before an SQL statement, including begin and commit.
func (b *boundaries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	b.pass()
	return ctx
}

// TraceQueryEnd is the boundary after an SQL statement.
func (b *boundaries) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) { b.pass() }

// TraceBatchStart is the boundary before a batch of statements, such as the commit with what was appended.
func (b *boundaries) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	b.pass()
	return ctx
}

// TraceBatchQuery is the boundary after the answer to each of them: Postgres may already have executed the others.
func (b *boundaries) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) { b.pass() }

// TraceBatchEnd is the boundary after all of them.
func (b *boundaries) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) { b.pass() }

// publisher has a boundary on either side of each publish.
type publisher struct {
	next events.Publisher
	*boundaries
}

func (p publisher) Publish(ctx context.Context, e cloudevents.Event) error {
	p.pass()
	err := p.next.Publish(ctx, e)
	p.pass()
	return err
}

// lead sends the functions' requests to the API servers within this process, with a boundary before and after each
// request: after a kill at the second one, the server has done what it was asked for. It returns the settings that name them.
func lead(ctx context.Context, b *boundaries) (settings.Lookup, error) {
	var apis map[string]string
	if err := json.Unmarshal([]byte(os.Getenv(envAPIs)), &apis); err != nil {
		return nil, fmt.Errorf("%s: %w", envAPIs, err)
	}
	named := map[string]string{}
	for name, address := range apis {
		api, err := url.Parse(address)
		if err != nil {
			return nil, err
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		server := &http.Server{Handler: b.around(httputil.NewSingleHostReverseProxy(api))} // a test's own loopback server needs no timeouts
		go func() { _ = server.Serve(l) }()
		if name == nuvlaAPI {
			named["NUVLA_ENDPOINT"] = "http://" + l.Addr().String()
			continue
		}
		inside := kubeapi.Server{URL: "http://" + l.Addr().String()} // only used as an address here
		if err := os.WriteFile(filepath.Join(os.Getenv(envKubeconfigs), name), []byte(inside.Kubeconfig()), 0o600); err != nil {
			return nil, err
		}
	}
	return settings.Map(named), nil
}

// calls has a boundary before a call of another controller and one after its answer.
type calls struct{ *boundaries }

// RoundTrip implements http.RoundTripper.
func (c calls) RoundTrip(r *http.Request) (*http.Response, error) {
	c.pass()
	resp, err := http.DefaultTransport.RoundTrip(r)
	c.pass()
	return resp, err
}

// around has a boundary before the request and one before its answer.
func (b *boundaries) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.pass()
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		b.pass()
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

// host serves every function in this process: routes under their own paths, events at /events/<function>.
func host() error {
	ctx := context.Background()
	var c boot.Config
	if err := settings.Read(os.LookupEnv, "", &c); err != nil {
		return err
	}
	b := &boundaries{}
	var led settings.Lookup
	if os.Getenv(envAPIs) != "" {
		var err error
		if led, err = lead(ctx, b); err != nil {
			return err
		}
	}
	client := &http.Client{}
	db, err := store.Open(ctx, c.Store, publisher{events.HTTPPublisher{URL: c.Broker, Client: client}, b}, b)
	if err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	slog.SetDefault(log)
	router := function.NewRouter()
	router.Handle("GET /boundaries", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		_, _ = fmt.Fprint(w, b.passed)
	}))
	router.Handle("POST /boundaries/{kill}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		killAt, err := strconv.Atoi(r.PathValue("kill"))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		b.begin(killAt)
	}))
	// A call is answered before its events are published. Boundaries are counted one call after the other, so the
	// caller waits here until the events of the last call are published.
	router.Handle("GET /settled", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := db.Flush(r.Context()); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	verifier := auth.NewVerifier(c.Auth, client, nil)
	for _, entry := range functions.Registry {
		platform := function.Platform{DB: db, Auth: verifier, Log: log, Settings: led.Or(os.LookupEnv)}
		if strings.HasPrefix(entry.Name, "controller-") {
			platform.Transport = calls{b}
		}
		h, err := entry.Handler(platform.Env(entry.Name))
		if err != nil {
			return err
		}
		for _, route := range entry.Spec.Patterns() {
			router.Handle(route, h)
		}
		if len(entry.Spec.Consumes) > 0 {
			path := "/events/" + entry.Name
			router.Handle("POST "+path, http.StripPrefix(path, rooted(h)))
		}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return (&http.Server{Handler: router}).Serve(l) // a test's own loopback server needs no timeouts
}

// rooted turns the empty path that StripPrefix leaves into the root.
func rooted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = function.EventPath
		h.ServeHTTP(w, r)
	})
}
