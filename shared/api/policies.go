package api

import (
	"context"
	"encoding/json"
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

// Shown is what a policy watches, filled in, and what that yields now.
type Shown struct {
	Expr        string   `json:"expr"`
	ViolatedIf  string   `json:"violatedIf,omitempty"`
	Series      *int     `json:"series"`    // that the expression looks at; nil = telemetry cannot be asked
	Violating   *int     `json:"violating"` // of them
	Value       *float64 `json:"value"`     // the worst
	Samples     []Sample `json:"samples"`
	Unavailable string   `json:"unavailable,omitempty"` // why telemetry cannot be asked
}

// Sample is a value with its labels.
type Sample struct {
	Labels map[string]string `json:"labels"`
	Value  float64           `json:"value"`
}

// Past is when a policy would have been violated.
type Past struct {
	Expr        string    `json:"expr"`
	Evaluations int       `json:"evaluations"`
	Episodes    []Episode `json:"episodes"`
	Truncated   bool      `json:"truncated,omitempty"`
	Forecast    *Foreseen `json:"forecast,omitempty"`
}

// Foreseen is what the forecast of a policy would have been worth.
type Foreseen struct {
	Ahead          string  `json:"ahead"`
	Violations     int     `json:"violations"`
	Earlier        int     `json:"earlier"`
	SecondsEarlier float64 `json:"secondsEarlier"`
	InVain         int     `json:"inVain"`
	Open           int     `json:"open"`
}

// Episode is one time in which its alert would have fired.
type Episode struct {
	Labels  map[string]string `json:"labels"`
	From    time.Time         `json:"from"`
	FiredAt time.Time         `json:"firedAt"`
	To      time.Time         `json:"to"`
	Peak    *float64          `json:"peak"`
}

// RenderPolicy shows what a stored policy watches and what that yields now. Nothing changes.
func (c *Client) RenderPolicy(ctx context.Context, id string) (*Shown, error) {
	stored, err := c.storedPolicy(ctx, id)
	if err != nil {
		return nil, err
	}
	return one[Shown](ctx, c, about("render", stored))
}

// BacktestPolicy returns when a stored policy would have been violated. Nothing changes.
func (c *Client) BacktestPolicy(ctx context.Context, id string, from, to time.Time) (*Past, error) {
	stored, err := c.storedPolicy(ctx, id)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(map[string]any{"policy": stored, "from": from, "to": to})
	if err != nil {
		return nil, err
	}
	return one[Past](ctx, c, about("backtest", body))
}

// storedPolicy is a policy as the registry has it, without what only the server writes.
func (c *Client) storedPolicy(ctx context.Context, id string) (json.RawMessage, error) {
	var stored map[string]json.RawMessage
	if _, err := c.do(ctx, get(registry+"/"+url.PathEscape(id), nil), &stored); err != nil {
		return nil, err
	}
	for _, field := range []string{"id", "status", "paused"} {
		delete(stored, field)
	}
	return json.Marshal(stored)
}

func about(question string, body []byte) request {
	return request{
		method: http.MethodPost, path: "/polman/registry/api/v1/" + question, media: mediaJSON, body: body, idempotent: true,
	}
}
