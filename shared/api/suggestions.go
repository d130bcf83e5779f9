package api

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Suggestion is a remediation that waits for a person.
type Suggestion struct {
	ID          string    `json:"id"`
	PolicyID    string    `json:"policyId"`
	PolicyName  string    `json:"policyName"`
	App         string    `json:"appInstance"` // full id
	AppName     string    `json:"appName"`
	Component   string    `json:"appComponent"`
	Remediation string    `json:"remediation"`
	Value       string    `json:"currentValue"`
	Threshold   *string   `json:"threshold"`
	Since       time.Time `json:"since"`
}

const suggestions = "/polman/registry/api/v1/suggestions"

// Suggestions lists what waits for a person, oldest first; of one application if its full id is given.
func (c *Client) Suggestions(ctx context.Context, app string) ([]Suggestion, error) {
	q := url.Values{}
	if app != "" {
		q.Set("app", app)
	}
	return list[Suggestion](ctx, c, get(suggestions, q))
}

// ConfirmSuggestion has a suggestion carried out, or dismisses it.
func (c *Client) ConfirmSuggestion(ctx context.Context, id string, confirmed bool) error {
	what := "/confirm"
	if !confirmed {
		what = "/dismiss"
	}
	_, err := c.do(ctx, request{method: http.MethodPost, path: suggestions + "/" + url.PathEscape(id) + what, idempotent: true}, nil)
	return err
}
