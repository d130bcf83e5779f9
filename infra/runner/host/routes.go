package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/littoral-project/littoral/infra/runner/mesh"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/boot"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/trace"
)

// Paths that the host itself serves besides the functions.
const (
	issuerPath     = "/oidc"
	prometheusPath = "/prometheus"
	brokerPath     = "/broker"
	kubernetesPath = "/kubernetes"
)

const page = `Littoral, on this machine: functions, Postgres, Prometheus, OpenID Connect and a simulated fleet in one
process. It is for laptops, tests and demos; on a cluster the same functions run under Knative.

  /jobmanager/  /matchmaker/  /aggregator/   the API (each has a home route)
  /fleet                                     the simulated clusters, and how to make them fail
  /prometheus/api/v1/query?query=...         what they measure
  /oidc/.well-known/openid-configuration     who issues access tokens
  /kubernetes/apis/...                       objects of Kubernetes kinds that functions watch for
  /broker/stats  /broker/dead-letters        what became of events
`

// mountOwn adds the host's own routes.
func (h *Host) mountOwn(router *function.Router, verifier *auth.Verifier) error {
	routes := map[string]http.Handler{
		"GET /{$}":                            http.HandlerFunc(h.showPage),
		"GET /healthz":                        http.HandlerFunc(h.health),
		issuerPath + "/":                      h.issuer.Handler(),
		"GET " + brokerPath + "/stats":        guard(verifier, auth.Viewer, http.StripPrefix(brokerPath, h.broker.State())),
		"GET " + brokerPath + "/dead-letters": guard(verifier, auth.Viewer, http.StripPrefix(brokerPath, h.broker.State())),
		// On a cluster only workloads in it reach the Broker; here only the owner of the machine may.
		"POST " + brokerPath + "/{namespace}/{broker}": guard(verifier, auth.Admin,
			http.StripPrefix(brokerPath, h.broker.Ingress())),
		kubernetesPath + "/":                guard(verifier, auth.Admin, http.StripPrefix(kubernetesPath, h.objects.Handler())),
		"POST " + prometheusPath + otlpPath: guard(verifier, auth.Agent, http.StripPrefix(prometheusPath, h.prometheus.OTLPHandler())),
		prometheusPath + "/":                guard(verifier, auth.Viewer, http.StripPrefix(prometheusPath, h.prometheus.Handler())),
	}
	if h.fleet != nil {
		control, err := h.fleet.Handler(verifier, h.log)
		if err != nil {
			return err
		}
		routes["/fleet"], routes["/fleet/"] = control, control
	}
	for route, handler := range routes {
		if err := handle(router, route, handler); err != nil {
			return err
		}
	}
	return nil
}

// guard admits only callers with the role.
func guard(verifier *auth.Verifier, role auth.Role, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := verifier.Authenticate(r, role); err != nil {
			problem.Write(w, err, trace.ID(trace.Start(r.Context(), r.Header.Get("Traceparent"))))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (h *Host) showPage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprint(w, page)
}

// health reports whether this host can do its work.
func (h *Host) health(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if err := h.db.Ping(ctx); err != nil {
		problem.Write(w, problem.Wrap(problem.Unavailable, err, "the store is away"), "")
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintln(w, "ok")
}

// serve begins to serve requests, over the network and inside the process.
func (h *Host) serve(ctx context.Context, services []service) error {
	router := function.NewRouter()
	if err := h.mount(router, services); err != nil {
		return err
	}
	h.mesh.Handle(mesh.IngressHost, h.broker.Ingress())
	h.mesh.Handle(prometheusHost, h.prometheusInside())
	if own, err := url.Parse(h.url); err == nil {
		h.mesh.Handle(own.Host, router) // functions fetch the issuer's keys from the public address
	}
	if err := h.broker.Start(ctx); err != nil {
		return err
	}
	h.server = &http.Server{
		Handler: router, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, Protocols: boot.Protocols(),
	}
	go func() {
		if err := h.server.Serve(h.listener); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			h.fail(fmt.Errorf("serve: %w", err))
		}
	}()
	h.onStop(h.stopServing)
	return nil
}

// drain limits how long open requests may take once the host stops.
const drain = 10 * time.Second

func (h *Host) stopServing(ctx context.Context) error {
	h.stop() // streams
	bounded, cancel := context.WithTimeout(ctx, drain)
	defer cancel()
	if err := h.server.Shutdown(bounded); err != nil {
		return errors.Join(fmt.Errorf("open requests were cut off: %w", err), h.server.Close())
	}
	return nil
}
