// Package ruleclient stores the rules of policies with a rules API (shared/docs/contracts.md §3.8): our own telemetry
// controller, or the one that ICOS runs beside its ruler.
package ruleclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/credentials"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
)

// Config is read from the environment by envconfig.
type Config struct {
	// URL is that of the collection, such as http://telemetry/rules/. Without one no rule is kept: policies are there,
	// and something else has to watch them.
	URL      string        `envconfig:"RULES_API_URL"`
	Token    string        `envconfig:"RULES_API_TOKEN"`    // bearer token; else one is got by client credentials, if set
	Audience string        `envconfig:"RULES_API_AUDIENCE"` // for such a token
	Timeout  time.Duration `envconfig:"RULES_API_TIMEOUT" default:"8s"`
	credentials.Config
}

// New returns the rule store of the settings. The error says what is wrong with the address.
func New(c Config, h *http.Client) (policies.Rules, error) {
	if c.URL == "" {
		return nowhere{}, nil
	}
	u, err := url.Parse(c.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("RULES_API_URL must be a URL as http://telemetry/rules/")
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return &client{
		config: c, base: strings.TrimRight(c.URL, "/") + "/", shown: shown.String(), http: h,
		tokens: credentials.New(c.Config, h),
	}, nil
}

// nowhere is where rules go without a rules API.
type nowhere struct{}

func (nowhere) URL() string                                                 { return "" }
func (nowhere) Put(context.Context, registry.RuleGroup) (string, error)     { return "", nil }
func (nowhere) Delete(context.Context, string) error                        { return nil }
func (nowhere) List(context.Context) (map[string]registry.RuleGroup, error) { return nil, nil }

type client struct {
	config Config
	base   string
	shown  string
	http   *http.Client
	tokens *credentials.Source
}

// URL is the collection's, without what may be secret in it.
func (c *client) URL() string { return c.shown }

// Put posts the group; the API names it by the group's name, so that a repeat is an update.
func (c *client) Put(ctx context.Context, group registry.RuleGroup) (string, error) {
	body := registry.RulesRequest{Data: registry.RuleFile{Groups: []registry.RuleGroup{group}}}
	var answer struct {
		File string `json:"file"`
	}
	if err := c.call(ctx, http.MethodPost, "", body, &answer); err != nil {
		return "", err
	}
	if answer.File == "" {
		return "", problem.New(problem.Unavailable, "the rules API did not say what it calls the rule")
	}
	return answer.File, nil
}

// Delete removes the group; one that is not there is gone already.
func (c *client) Delete(ctx context.Context, file string) error {
	err := c.call(ctx, http.MethodDelete, url.PathEscape(file), nil, nil)
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	return err
}

// List returns every group by its file.
func (c *client) List(ctx context.Context) (map[string]registry.RuleGroup, error) {
	var raw json.RawMessage
	if err := c.call(ctx, http.MethodGet, "", nil, &raw); err != nil {
		return nil, err
	}
	return decodeList(raw)
}

const maxAnswer = 64 << 20 // bytes

func (c *client) call(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode rules: %w", err)
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return fmt.Errorf("ask the rules API: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if err := c.authorize(ctx, req); err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return problem.Wrap(problem.Unavailable, err, "the rules API is away; try again")
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return problem.Wrap(problem.Unavailable, err, "the rules API broke off; try again")
	}
	return c.read(method, resp.StatusCode, answer, out)
}

func (c *client) authorize(ctx context.Context, req *http.Request) error {
	token := c.config.Token
	if token == "" && c.tokens.Configured() {
		var err error
		if token, err = c.tokens.Token(ctx, c.config.Audience); err != nil {
			return err
		}
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return nil
}

// read takes an answer. Whatever is wrong is waited out, except for what the API says is wrong with the rule.
func (c *client) read(method string, status int, answer []byte, out any) error {
	text := problem.Brief(bytes.TrimSpace(answer), 300)
	switch {
	case status/100 == 2 && out == nil:
		return nil
	case status/100 == 2:
		if err := json.Unmarshal(answer, out); err != nil {
			return problem.Wrap(problem.Unavailable, err, "the rules API answered %s with what is no JSON", method)
		}
		return nil
	case status == http.StatusNotFound && method == http.MethodDelete:
		return problem.New(problem.NotFound, "the rules API knows no such rule")
	case status == http.StatusBadRequest || status == http.StatusUnprocessableEntity:
		return problem.New(problem.Invalid, "the rules API refuses the rule: %s", text)
	}
	return problem.Wrap(problem.Unavailable, fmt.Errorf("%d: %s", status, text), "the rules API answered %d", status)
}
