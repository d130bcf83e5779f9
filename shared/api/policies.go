package api

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Policy is a rule about applications.
type Policy struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Subject struct {
		AppName   string `json:"appName,omitempty"`
		App       string `json:"appInstance,omitempty"` // full id
		Component string `json:"appComponent,omitempty"`
	} `json:"subject"`
	Spec struct {
		Description string `json:"description,omitempty"`
		Template    string `json:"templateName,omitempty"`
		Type        string `json:"type"`
		Expr        string `json:"expr,omitempty"`
		ViolatedIf  string `json:"violatedIf,omitempty"`
	} `json:"spec"`
	Action struct {
		ExtraParams map[string]string `json:"extraParams,omitempty"`
	} `json:"action"`
	Variables map[string]any `json:"variables"`
	Status    struct {
		RenderedSpec *struct {
			Expr       string `json:"expr"`
			ViolatedIf string `json:"violatedIf"`
		} `json:"renderedSpec"`
		Events []struct {
			Type      string    `json:"type"`
			Timestamp time.Time `json:"timestamp"`
		} `json:"events"`
		Phase string `json:"phase"` // inactive, enforced, violated, unknown
	} `json:"status"`
	Paused bool `json:"paused"`
}

const registry = "/polman/registry/api/v1/policies"

// Policies lists the policies, oldest first; of one application if its full id is given, and of one phase.
func (c *Client) Policies(ctx context.Context, app, phase string) ([]Policy, error) {
	q := url.Values{}
	if app != "" {
		q.Set("app", app)
	}
	if phase != "" {
		q.Set("phase", phase)
	}
	return list[Policy](ctx, c, get(registry, q))
}

// ActivatePolicy has a policy watched, or not watched any more.
func (c *Client) ActivatePolicy(ctx context.Context, id string, active bool) error {
	what := "/activate"
	if !active {
		what = "/deactivate"
	}
	_, err := c.do(ctx, request{method: http.MethodPost, path: registry + "/" + url.PathEscape(id) + what, idempotent: true}, nil)
	return err
}

// SetVariable gives a variable of a policy another value.
func (c *Client) SetVariable(ctx context.Context, id, name, value string) error {
	path := registry + "/" + url.PathEscape(id) + "/variables/" + url.PathEscape(name) + "/" + url.PathEscape(value)
	_, err := c.do(ctx, request{method: http.MethodPost, path: path, idempotent: true}, nil)
	return err
}
