// Package backend opens the store of rule groups that the settings choose.
package backend

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/littoral-project/littoral/shared/kube"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/telemetry/rules"
	"github.com/littoral-project/littoral/shared/telemetry/rules/files"
	"github.com/littoral-project/littoral/shared/telemetry/rules/icos"
	"github.com/littoral-project/littoral/shared/telemetry/rules/mimir"
	"github.com/littoral-project/littoral/shared/telemetry/rules/prometheusrule"
)

// Config is read from the environment by envconfig.
type Config struct {
	Backend string `envconfig:"RULES_BACKEND"` // files, prometheusrule, mimir or icos

	Dir       string `envconfig:"RULES_DIR"`        // files: the directory of Prometheus' rule files
	ReloadURL string `envconfig:"RULES_RELOAD_URL"` // files: POST makes Prometheus reload; empty = it notices by itself

	Namespace string            `envconfig:"RULES_NAMESPACE" default:"littoral"` // prometheusrule: of the objects
	Labels    map[string]string `envconfig:"RULES_LABELS"`                       // prometheusrule: e.g. release:prometheus

	URL           string `envconfig:"RULES_URL"`           // mimir: without /config/v1/rules; icos: the full URL
	Tenant        string `envconfig:"RULES_TENANT"`        // mimir: X-Scope-OrgID
	Authorization string `envconfig:"RULES_AUTHORIZATION"` // mimir, icos: the header, for example "Bearer x"
}

// Names lists the backends.
func Names() []string { return []string{"files", "prometheusrule", "mimir", "icos"} }

// Platform is what a store of rules is made from.
type Platform struct {
	Config    func(into any) error // reads the settings
	Client    *http.Client
	Transport func(http.RoundTripper) http.RoundTripper // around calls to the API of a cluster
	DB        *store.DB
}

// Open returns the store that the settings choose, without connecting. Without a backend it returns a store
// that returns an error for every call, so the other functions can run where there are no rules.
func Open(p Platform) (rules.Store, error) {
	var c Config
	if err := p.Config(&c); err != nil {
		return nil, err
	}
	switch c.Backend {
	case "":
		return none{}, nil
	case "files":
		return files.New(c.Dir, c.ReloadURL, p.Client)
	case "prometheusrule":
		// A function runs in the cluster that stores its rules.
		client, err := kube.Open(kube.InCluster, p.Transport)
		if err != nil {
			return nil, fmt.Errorf("RULES_BACKEND prometheusrule: %w", err)
		}
		return prometheusrule.New(client, c.Namespace, c.Labels), nil
	case "mimir", "icos":
		remote, err := rules.NewRemote(c.URL, c.header(), p.Client)
		if err != nil {
			return nil, err
		}
		if c.Backend == "mimir" {
			return mimir.New(remote), nil
		}
		return icos.New(remote, p.DB), nil
	}
	return nil, fmt.Errorf("RULES_BACKEND %q is not one of %s", c.Backend, strings.Join(Names(), ", "))
}

func (c Config) header() http.Header {
	h := http.Header{}
	if c.Authorization != "" {
		h.Set("Authorization", c.Authorization)
	}
	if c.Tenant != "" {
		h.Set("X-Scope-Orgid", c.Tenant)
	}
	return h
}

// none is the store if no backend is set.
type none struct{}

var errNone = problem.New(problem.Unavailable, "no place for rules is set: RULES_BACKEND is one of %s",
	strings.Join(Names(), ", "))

func (none) Put(context.Context, rules.Group) error      { return errNone }
func (none) Delete(context.Context, string) error        { return errNone }
func (none) List(context.Context) ([]rules.Group, error) { return nil, errNone }
