// Package open chooses the store of logs by settings.
package open

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/littoral-project/littoral/shared/logs"
	"github.com/littoral-project/littoral/shared/logs/files"
	"github.com/littoral-project/littoral/shared/logs/loki"
	"github.com/littoral-project/littoral/shared/logs/victorialogs"
	"github.com/littoral-project/littoral/shared/problem"
)

// Config is read from the environment by envconfig.
type Config struct {
	Backend string `envconfig:"LOGS_BACKEND"` // files, victorialogs or loki

	Dir           string `envconfig:"LOGS_DIR"`           // files
	URL           string `envconfig:"LOGS_URL"`           // victorialogs, loki: base URL
	Tenant        string `envconfig:"LOGS_TENANT"`        // victorialogs: ACCOUNT:PROJECT; loki: X-Scope-OrgID
	Authorization string `envconfig:"LOGS_AUTHORIZATION"` // victorialogs, loki: the header, for example "Bearer x"
}

// Names lists the backends.
func Names() []string { return []string{"files", "victorialogs", "loki"} }

// Store returns the store that the settings choose, without connecting. Without a backend it returns one that returns an
// error for every call.
func Store(c Config, client *http.Client) (logs.Store, error) {
	switch c.Backend {
	case "":
		return none{}, nil
	case "files":
		if c.Dir == "" {
			return nil, errors.New("LOGS_DIR is not set")
		}
		return files.New(files.Options{Dir: c.Dir}), nil
	case "victorialogs", "loki":
		header, err := c.header()
		if err != nil {
			return nil, err
		}
		remote, err := logs.NewRemote(c.URL, header, client)
		if err != nil {
			return nil, err
		}
		if c.Backend == "loki" {
			return loki.New(remote), nil
		}
		return victorialogs.New(remote), nil
	}
	return nil, fmt.Errorf("LOGS_BACKEND %q is not one of %s", c.Backend, strings.Join(Names(), ", "))
}

func (c Config) header() (http.Header, error) {
	h := http.Header{}
	if c.Authorization != "" {
		h.Set("Authorization", c.Authorization)
	}
	switch {
	case c.Tenant == "":
	case c.Backend == "loki":
		h.Set("X-Scope-Orgid", c.Tenant)
	default:
		account, project, both := strings.Cut(c.Tenant, ":")
		if !both {
			return nil, fmt.Errorf("LOGS_TENANT of VictoriaLogs is ACCOUNT:PROJECT, not %q", c.Tenant)
		}
		h.Set("Accountid", account)
		h.Set("Projectid", project)
	}
	return h, nil
}

// none is the store if no backend is set.
type none struct{}

var errNone = problem.New(problem.NotImplemented, "no place for logs is set: LOGS_BACKEND is one of %s", strings.Join(Names(), ", "))

func (none) Write(context.Context, []logs.Entry) error              { return errNone }
func (none) Read(context.Context, logs.Query) ([]logs.Entry, error) { return nil, errNone }
