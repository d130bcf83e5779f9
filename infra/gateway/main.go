// Gateway is one base URL in front of all functions, for clusters whose ingress cannot choose a function by method and
// path: it reads the generated table of routes and forwards each request to the Service in the table.
//
// All it knows about functions are their routes and the functions that a call will need. It wakes those at once, so the
// whole chain starts while the first function does. It keeps no state; run as many replicas as you like. For a path
// that no function serves, it gives the same answer as the laptop host.
package main

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

	"github.com/littoral-project/littoral/shared/boot"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/wake"
)

type config struct {
	Port      string `envconfig:"PORT" default:"8080"`
	Routes    string `envconfig:"ROUTES" default:"/etc/littoral/routes"` // directory of the tables
	Namespace string `envconfig:"NAMESPACE" required:"true"`             // of the functions
	Domain    string `envconfig:"CLUSTER_DOMAIN" default:"svc.cluster.local"`
	Prewake   bool   `envconfig:"PREWAKE" default:"true"` // wake what a call will need while its function starts
}

// The times that the gateway needs to stop. The grace period in gateway.yaml allows for them.
const (
	quiet   = 5 * time.Second // after SIGTERM, requests may still arrive until the network has removed this instance
	longest = 5 * time.Minute // of one call: more than the timeout of any function; streams end at once
)

// mostAtOnce is how many calls, beside streams, fit into the memory that gateway.yaml allows.
const mostAtOnce = 2000

// wakeEvery is the least time between two calls that wake a function.
const wakeEvery = 20 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx); err != nil {
		slog.Error("gateway stopped", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stdout, nil)))
	var c config
	if err := settings.Read(os.LookupEnv, "", &c); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	routes, err := readTables(os.DirFS(c.Routes))
	if err != nil {
		return fmt.Errorf("%s: %w", c.Routes, err)
	}
	host := func(service string) string { return service + "." + c.Namespace + "." + c.Domain }
	waker := wake.New(wake.Config{
		On: c.Prewake, Service: "gateway", Chain: chains(routes), URL: "http://" + host("{name}"), Every: wakeEvery,
	}, slog.Default())
	handler, err := newHandler(routes, options{host: host, way: ways(), waker: waker, most: mostAtOnce, stopping: ctx})
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+c.Port)
	if err != nil {
		return err
	}
	if err := boot.Serve(ctx, listener, handler, quiet, longest); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ways are the transports to functions: HTTP/1.1, and HTTP/2 for gRPC.
func ways() func(grpc bool) http.RoundTripper {
	plain, h2c := transport(), transport()
	h2c.Protocols = new(http.Protocols)
	h2c.Protocols.SetUnencryptedHTTP2(true)
	return func(grpc bool) http.RoundTripper {
		if grpc {
			return h2c
		}
		return plain
	}
}

// transport keeps connections to Knative's own gateway, which is in front of all functions.
func transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = nil
	t.MaxIdleConnsPerHost = 32
	t.MaxIdleConns = 512
	t.ResponseHeaderTimeout = longest
	return t
}
