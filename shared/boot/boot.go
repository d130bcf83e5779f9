// Package boot runs a function as a process: settings, logs, listener, probes, shutdown.
//
// A pod's grace period is as long as its function's longest call (Knative sees to that). On shutdown it is used first
// for the quiet period, then for events that are still on their way to the Broker, then for telemetry; the store is
// closed last.
//
// A generated main is one call of Main. Nothing is dialled before the first request, so a cold function answers as soon
// as it listens.
package boot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/events/identity"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/observe"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/wake"
)

// Config is what every function reads from its environment.
type Config struct {
	Port     string     `envconfig:"PORT" default:"8080"`
	Broker   string     `envconfig:"K_SINK"` // where the outbox publishes to
	LogLevel slog.Level `envconfig:"LOG_LEVEL" default:"INFO"`
	Store    store.Config
	Auth     auth.Config
	Knative  identity.Config
	Wake     wake.Config

	FormerKey string `envconfig:"EVENT_KEY_FORMER"` // accepted beside the store's EventKey, and never signed with
}

// quiet is how long after SIGTERM requests may still arrive while the network forgets this instance.
const quiet = 5 * time.Second

// Main runs the function until SIGTERM. It exits 1 when it cannot start.
func Main[F any](name string, spec function.Spec, construct func(*function.Env) (F, error)) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.LookupEnv, function.NewEntry(name, spec, construct)); err != nil {
		slog.Error("function stopped", "function", name, "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, from settings.Lookup, entry function.Entry) error {
	var c Config
	if err := settings.Read(from, "", &c); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	if err := errors.Join(c.requireKey(entry.Spec), c.Auth.Check()); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	log := slog.New(observe.LogHandler(slog.NewJSONHandler(os.Stdout, &slog.HandlerOptions{Level: c.LogLevel}))).
		With("revision", from.Get("K_REVISION"))
	slog.SetDefault(log)
	exporter := exporter(from, log)
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), observe.Farewell)
		defer cancel()
		exporter.Shutdown(last)
	}()
	waker := wake.New(c.Wake, log)
	waker.Event(entry.Spec.PrewakeFor...)
	env, err := newEnv(ctx, entry.Name, c, from, log, exporter.Recorder(entry.Name), waker)
	if err != nil {
		return err
	}
	defer closeStore(env.DB, max(entry.Spec.Timeout-quiet-observe.Farewell, observe.Farewell), log)
	handler, err := entry.Handler(env)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+c.Port)
	if err != nil {
		return err
	}
	return Serve(ctx, listener, waker.Handler(handler, entry.Spec.PrewakeFor...), quiet, entry.Spec.Timeout)
}

// requireKey refuses a function on a cluster that handles events without a key to sign them and to detect forgeries: it
// would accept whatever anybody sends, and nobody would notice.
func (c Config) requireKey(spec function.Spec) error {
	if c.Wake.Service == "" || c.Store.EventKey != "" || len(spec.Consumes)+len(spec.Emits) == 0 {
		return nil
	}
	return errors.New("EVENT_KEY is not set, so no event could be told from a forged one")
}

// closeStore closes the store when every event is published, including some that others left behind, or when the time
// is over: the rest stays in the outbox.
func closeStore(db *store.DB, within time.Duration, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := db.Finish(ctx); err != nil {
		log.Warn("stopped before every event was out", "error", err.Error())
	}
	db.Close()
}

// exporter makes the exporter for the collector; bad settings cost telemetry and nothing else.
func exporter(from settings.Lookup, log *slog.Logger) *observe.Exporter {
	c, err := observe.FromEnv(from.Get)
	if err != nil {
		log.Warn("settings of telemetry", "error", err.Error())
	}
	return observe.New(c, &http.Client{Timeout: c.Timeout}, log)
}

// newEnv makes a function's environment without connecting. recorder records its calls and waker gets its events; both
// may be nil.
func newEnv(
	ctx context.Context, name string, c Config, from settings.Lookup, log *slog.Logger, recorder *observe.Recorder,
	waker *wake.Waker,
) (*function.Env, error) {
	tokens, err := identity.Open(c.Knative)
	if err != nil {
		return nil, err
	}
	broker := events.HTTPPublisher{
		URL: c.Broker, Client: &http.Client{Transport: recorder.Transport(tokens.Transport(toBroker(c.Store)))},
	}
	db, err := store.Open(ctx, c.Store, waker.Publisher(broker), nil)
	if err != nil {
		return nil, err
	}
	env := function.Platform{
		DB: db, Log: log, Settings: from, Recorder: func(string) *observe.Recorder { return recorder },
		Deliveries: tokens.Deliveries(db), EventKey: c.Store.EventKey, FormerKey: c.FormerKey, Stopping: ctx,
	}.Env(name)
	env.Auth = auth.NewVerifier(c.Auth, env.HTTP, db)
	return env, nil
}

// toBroker keeps a connection for each event that may be on its way. The store decides how long one may take.
func toBroker(c store.Config) http.RoundTripper {
	standard, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	mine := standard.Clone()
	mine.MaxIdleConnsPerHost = c.PublishAtOnce
	return mine
}

// Protocols are HTTP/1.1 and, for gRPC, HTTP/2 without TLS, which a cluster or a proxy ends before it.
func Protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	return p
}

// Serve answers requests until ctx ends, then fails probes until no request has come for the quiet period, and then
// waits for running requests, as long as the longest may take. Reading a request and writing an answer are limited by
// that time too. The grace period of a pod must exceed the sum; not so for a function, since Knative's proxy waits for
// its calls before the function is told to end.
func Serve(ctx context.Context, l net.Listener, h http.Handler, quiet, longest time.Duration) error {
	drainer := &drainer{inner: h}
	server := &http.Server{
		Handler: drainer, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ReadTimeout: longest, WriteTimeout: 2 * longest, // both from the beginning of a call
		Protocols: Protocols(),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	drainer.drain(quiet)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("shut down: %w", err)
	}
	return nil
}
