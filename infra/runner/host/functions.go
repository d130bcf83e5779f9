package host

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	servingv1 "knative.dev/serving/pkg/apis/serving/v1"

	"github.com/littoral-project/littoral/infra/runner/issuer"
	"github.com/littoral-project/littoral/infra/runner/manifests"
	"github.com/littoral-project/littoral/infra/runner/mesh"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/observe"
	"github.com/littoral-project/littoral/shared/settings"
)

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

// readSettings reads the settings of the host, with the host's own values as defaults.
func (h *Host) readSettings() (own, error) {
	s := own{Auth: auth.Config{Issuer: h.url + issuerPath, Audience: audience}}
	if err := settings.Read(h.options.Settings, "", &s); err != nil {
		return s, fmt.Errorf("settings: %w", err)
	}
	for _, one := range []struct {
		file string
		into *string
	}{{"event-key", &s.EventKey}, {"session-key", &s.Auth.Session.Key}} {
		if *one.into != "" {
			continue
		}
		key, err := h.home.secret(one.file)
		if err != nil {
			return s, fmt.Errorf("%s: %w", one.file, err)
		}
		*one.into = key
	}
	if err := s.Auth.Check(); err != nil {
		return s, fmt.Errorf("settings: %w", err)
	}
	return s, nil
}

// inHost returns the settings that functions need to find their services here: Prometheus and its rules, the rules API,
// the issuer. STALE_AFTER is shorter than the default, since a small fleet reports every two seconds.
func (h *Host) inHost() map[string]string {
	me := h.issuer.Credentials(policyManager)
	values := map[string]string{
		"PROMETHEUS_ADDRESS": "http://" + prometheusHost, "STALE_AFTER": max(15*time.Second, 3*h.pace).String(),
		"RULES_BACKEND": "files", "RULES_DIR": h.rulesDir(), "RULES_RELOAD_URL": "http://" + prometheusHost + reloadPath,
		"METRICS_PUSH_URL": "http://" + prometheusHost + otlpPath,
		"RULES_API_URL":    h.url + "/rules/",
		"OBJECTS_URL":      "file://" + h.objectsDir(),
		"LOGS_BACKEND":     "files", "LOGS_DIR": h.logsDir(),
		"OIDC_AUDIENCE": h.settings.Auth.Audience,
		// Others on this machine find it by these, unless the user says otherwise; its lighthouse is its own.
		"LIGHTHOUSE": h.url, "CONTROLLER_NAME": "laptop", "CONTROLLER_ADDRESS": h.url,
		"OIDC_CLIENT_ID": me.ClientID, "OIDC_CLIENT_SECRET": me.ClientSecret, "OIDC_TOKEN_URL": me.TokenURL,
	}
	if h.settings.Auth.Issuer == h.url+issuerPath { // another issuer knows no such client
		console := h.issuer.Credentials(issuer.Console)
		values["LOGIN_CLIENT_ID"], values["LOGIN_CLIENT_SECRET"] = console.ClientID, console.ClientSecret
	}
	return values
}

// settingsOf are the settings of the functions: the user's, else the plain value of a function's Service, else the host's.
// What the user set for all functions also holds for one whose Service says otherwise.
func settingsOf(services []service, user settings.Lookup, inHost map[string]string) settings.Lookup {
	own := map[string]string{}
	for _, s := range services {
		prefix := strings.ToUpper(strings.ReplaceAll(s.entry.Name, "-", "_"))
		for name, value := range s.env {
			if _, set := user.Or(nil)(name); !set {
				own[prefix+"_"+name] = value
			}
		}
	}
	return user.Or(settings.Map(own)).Or(settings.Map(inHost))
}

// mount makes every function and adds it to the router and the mesh.
func (h *Host) mount(router *function.Router, services []service) error {
	verifier := auth.NewVerifier(h.settings.Auth, &http.Client{Transport: h.mesh, Timeout: function.Outbound}, nil)
	platform := function.Platform{
		DB: h.db, Auth: verifier, Log: h.log, Settings: settingsOf(services, h.options.Settings, h.inHost()),
		Transport: h.mesh, Recorder: h.exporter.Recorder, Stopping: h.stopping,
		EventKey: h.settings.EventKey, FormerKey: h.settings.FormerKey,
	}
	for _, s := range services {
		handler, err := s.entry.Handler(platform.Env(s.entry.Name))
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
	c, err := observe.FromEnv(h.options.Settings.Get)
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

// logsDir is where the fleet's logs are kept.
func (h *Host) logsDir() string { return filepath.Join(h.home.dir, "logs") }

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
