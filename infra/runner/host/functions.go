package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/kelseyhightower/envconfig"
	"k8s.io/apimachinery/pkg/types"
	servingv1 "knative.dev/serving/pkg/apis/serving/v1"

	"github.com/littoral-project/littoral/infra/runner/manifests"
	"github.com/littoral-project/littoral/infra/runner/mesh"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/observe"
)

// outbound limits a call that a function makes to another service, as in package boot.
const outbound = 10 * time.Second

// prometheusHost is the address of the host's Prometheus for functions; calls to it do not leave the process.
const prometheusHost = "prometheus.littoral.svc.cluster.local"

// service is a Service and the function in its image.
type service struct {
	name    types.NamespacedName
	entry   function.Entry
	private bool
	env     map[string]string
}

// resolve finds the function of every Service.
func (h *Host) resolve(set *manifests.Set) ([]service, error) {
	var services []service
	var faults []error
	for _, name := range manifests.Sorted(set.Services) {
		s := set.Services[name]
		path, ok := strings.CutPrefix(manifests.Image(s), "ko://")
		if !ok {
			faults = append(faults, fmt.Errorf("Service %s: image %q: the laptop host runs ko:// images only",
				name.Name, manifests.Image(s)))
			continue
		}
		entry, ok := h.options.Registry[path]
		if !ok {
			faults = append(faults, fmt.Errorf("Service %s: this program holds no function %s; after adding one: make generate",
				name.Name, path))
			continue
		}
		services = append(services, service{name, entry, isPrivate(s), manifests.Environment(s)})
	}
	return services, errors.Join(faults...)
}

// isPrivate reports whether a Service is reachable only inside the cluster, and so must not be on the base URL here.
func isPrivate(s *servingv1.Service) bool {
	return s.Labels["networking.knative.dev/visibility"] == "cluster-local"
}

// readSettings reads the environment, with the host's own values as defaults.
func (h *Host) readSettings() (settings, error) {
	s := settings{Auth: auth.Config{Issuer: h.url + issuerPath, Audience: audience}}
	if err := envconfig.Process("", &s); err != nil {
		return s, fmt.Errorf("settings: %w", err)
	}
	if s.EventKey == "" {
		key, err := h.home.secret("event-key")
		if err != nil {
			return s, fmt.Errorf("event key: %w", err)
		}
		s.EventKey = key
	}
	return s, nil
}

// environment guards the environment variables of the process, which are the settings of functions. Several hosts in
// one process, as in tests, share them, so each host sets them and makes its functions under the lock.
var environment = struct {
	sync.Mutex

	ours map[string]bool // set by a host, so another host may change it
}{ours: map[string]bool{}}

// inHost returns the settings that functions need to find their services here: Prometheus and its rules, the rules API,
// the issuer. STALE_AFTER is shorter than the default, since the fleet reports every two seconds.
func (h *Host) inHost() map[string]string {
	me := h.issuer.Credentials(policyManager)
	return map[string]string{
		"PROMETHEUS_ADDRESS": "http://" + prometheusHost, "STALE_AFTER": "15s",
		"RULES_BACKEND": "files", "RULES_DIR": h.rulesDir(), "RULES_RELOAD_URL": "http://" + prometheusHost + reloadPath,
		"RULES_API_URL":  h.url + "/rules/",
		"OBJECTS_URL":    "file://" + h.objectsDir(),
		"OIDC_AUDIENCE":  h.settings.Auth.Audience,
		"OIDC_CLIENT_ID": me.ClientID, "OIDC_CLIENT_SECRET": me.ClientSecret, "OIDC_TOKEN_URL": me.TokenURL,
	}
}

// environ sets the environment variables of functions: those of the host, and the plain values of each Service with its
// function's prefix. Variables that the user has set stay. The caller holds the lock of environment.
func environ(services []service, inHost map[string]string) error {
	values := maps.Clone(inHost)
	for _, s := range services {
		prefix := strings.ToUpper(strings.ReplaceAll(s.entry.Name, "-", "_"))
		for name, value := range s.env {
			if _, set := os.LookupEnv(name); !set ||
				environment.ours[name] { // else the user's bare name, meant for all, would lose
				values[prefix+"_"+name] = value
			}
		}
	}
	for name, value := range values {
		if _, set := os.LookupEnv(name); set && !environment.ours[name] {
			continue
		}
		environment.ours[name] = true
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("settings: %w", err)
		}
	}
	return nil
}

// mount makes every function and adds it to the router and the mesh.
func (h *Host) mount(router *function.Router, services []service) error {
	environment.Lock()
	defer environment.Unlock()
	if err := environ(services, h.inHost()); err != nil {
		return err
	}
	verifier := auth.NewVerifier(h.settings.Auth, &http.Client{Transport: h.mesh, Timeout: outbound}, nil)
	for _, s := range services {
		recorder := h.exporter.Recorder(s.entry.Name)
		client := &http.Client{Transport: recorder.Transport(h.mesh), Timeout: outbound}
		handler, err := s.entry.Handler(&function.Env{
			Name: s.entry.Name, DB: h.db, HTTP: client, Log: h.log, Auth: verifier, Observe: recorder,
			EventKey: h.settings.EventKey, FormerKey: h.settings.FormerKey, Stopping: h.stopping,
		})
		if err != nil {
			return err
		}
		h.mesh.Handle(mesh.ServiceHost(s.name), handler)
		if s.private {
			continue
		}
		for _, route := range s.entry.Spec.Patterns() {
			if err := handle(router, route, handler); err != nil {
				return fmt.Errorf("%s: %w", s.entry.Name, err)
			}
		}
	}
	return h.mountOwn(router, verifier)
}

// makeExporter makes the exporter that reports all functions to a collector; without a collector it stays nil.
func (h *Host) makeExporter() {
	c, err := observe.FromEnv(os.Getenv)
	if err != nil {
		h.log.Warn("settings of telemetry", "error", err)
	}
	h.exporter = observe.New(c, &http.Client{Timeout: c.Timeout}, h.log)
	h.onStop(func(ctx context.Context) error {
		last, cancel := context.WithTimeout(ctx, observe.Farewell)
		defer cancel()
		h.exporter.Shutdown(last)
		return nil
	})
}

// objectsDir is the directory of the archive.
func (h *Host) objectsDir() string { return filepath.Join(h.home.dir, "objects") }

// handle turns the panic about a conflicting route into an error.
func handle(router *function.Router, route string, h http.Handler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("route %q: %v", route, p)
		}
	}()
	router.Handle(route, h)
	return nil
}
