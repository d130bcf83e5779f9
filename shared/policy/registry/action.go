package registry

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/littoral-project/littoral/shared/problem"
)

var methods = []string{"GET", "POST", "PUT", "DELETE"}

func (a *Action) check(faults *problem.Faults) {
	if a.Type != ActionWebhook {
		faults.Add("action.type", 0, "must be %q", ActionWebhook)
	}
	if !slices.Contains(methods, a.HTTPMethod) {
		faults.Add("action.httpMethod", 0, "must be one of %s", strings.Join(methods, ", "))
	}
	if a.URL != "" {
		u, err := url.Parse(a.URL)
		switch {
		case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || len(a.URL) > maxText:
			faults.Add("action.url", 0, "must be an absolute http or https URL")
		case u.User != nil:
			faults.Add("action.url", 0, "must not carry a user or password")
		}
	}
	if len(a.ExtraParams) > maxParams {
		faults.Add("action.extraParams", 0, "has %d entries; %d are allowed", len(a.ExtraParams), maxParams)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(a.ExtraParams)) {
		if !plain(name, maxName) || len(a.ExtraParams[name]) > maxText {
			faults.Add("action.extraParams", 0, "has a name or a value that is too long or no text")
		}
	}
}

// Callback is a service's request to send it the violations of an application's policies (shared/docs/contracts.md
// §3.4). It has only a path, since the policy manager knows the addresses of services from its settings.
type Callback struct {
	Type               string            `json:"type"` // icos-service
	URI                string            `json:"uri"`
	HTTPMethod         string            `json:"http_method"`
	ExtraParams        map[string]string `json:"extra_params"`
	ExtraParameters    map[string]string `json:"extra_parameters"` // the spelling of one line of job managers
	IncludeAccessToken bool              `json:"include_access_token"`
}

// Apply makes the action of p call the service at base. p's own parameters, above all its remediation, stay.
func (c *Callback) Apply(p *Policy, base string) {
	p.Action.Type, p.Action.HTTPMethod = ActionWebhook, strings.ToUpper(c.HTTPMethod)
	p.Action.URL = strings.TrimRight(base, "/") + "/" + strings.TrimLeft(c.URI, "/")
	p.Action.IncludeAccessToken = c.IncludeAccessToken
	params := map[string]string{}
	maps.Copy(params, c.ExtraParameters)
	maps.Copy(params, c.ExtraParams)
	maps.Copy(params, p.Action.ExtraParams)
	p.Action.ExtraParams = params
}
