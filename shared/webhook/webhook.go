// Package webhook calls URLs that users wrote, but no address in our own network.
//
// A name may resolve to any address, and to another one a moment later. So the check is made on the address of the
// connection: private, loopback, link-local, metadata and other special networks are refused, unless a setting allows
// them. Proxies are not used, redirects are not followed, and time and sizes are limited.
package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/credentials"
	"github.com/littoral-project/littoral/shared/problem"
)

// Config is read from the environment by envconfig.
type Config struct {
	// Allow lists addresses, networks and host names that may be called although they are not public.
	Allow   []string      `envconfig:"WEBHOOK_ALLOW"`
	Timeout time.Duration `envconfig:"WEBHOOK_TIMEOUT" default:"8s"`
	// Audience is the audience of tokens for Littoral itself; such a token is not sent to other parties.
	Audience string `envconfig:"OIDC_AUDIENCE"`
	credentials.Config
}

// maxAnswer limits how much of an answer is read, although its content is ignored; maxHeader limits its header.
const (
	maxAnswer = 64 << 10
	maxHeader = 32 << 10
)

var errRefused = errors.New("calls to this address are refused")

// Client makes calls.
type Client struct {
	config  Config
	allowed Allowed
	dialer  *net.Dialer
	http    *http.Client
	trusted *http.Client // for host names that a setting allows
	tokens  *credentials.Source
}

// New returns a client without connecting. own is our own client: it fetches tokens, and calls allowed host names,
// since it may resolve hosts in a special way.
func New(c Config, own *http.Client) (*Client, error) {
	allowed, err := newAllowed(c.Allow)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: c.Timeout, Control: allowed.control}
	guarded := &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: c.Timeout, ResponseHeaderTimeout: c.Timeout,
		MaxResponseHeaderBytes: maxHeader, DisableKeepAlives: true, DisableCompression: true,
	}
	return &Client{
		config: c, allowed: allowed, tokens: credentials.New(c.Config, own), dialer: dialer,
		http:    &http.Client{Transport: guarded, Timeout: c.Timeout, CheckRedirect: stay},
		trusted: &http.Client{Transport: own.Transport, Timeout: c.Timeout, CheckRedirect: stay},
	}, nil
}

// stay ignores redirects.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Call is one call.
type Call struct {
	Method string
	URL    string
	ID     string            // identifies the call, so that its target can detect a repeat
	Body   map[string]any    // of POST, PUT and DELETE, as JSON
	Query  map[string]string // of GET
	Token  bool              // send an access token for the target's audience
}

// Do makes the call. The error is Forbidden for a target that must not be called, else Unavailable: it may succeed
// later.
func (c *Client) Do(ctx context.Context, call Call) error {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	req, err := c.request(ctx, call)
	if err != nil {
		return err
	}
	client := c.http
	if c.allowed.host(req.URL.Hostname()) {
		client = c.trusted
	}
	resp, err := client.Do(req)
	if of := new(url.Error); errors.As(err, &of) {
		err = of.Err // without the URL, which may contain a secret and would be logged
	}
	switch {
	case errors.Is(err, errRefused):
		return problem.Wrap(problem.Forbidden, err, "%s is not called: its address is private or special", req.URL.Host)
	case err != nil:
		return problem.Wrap(problem.Unavailable, err, "%s cannot be reached", req.URL.Host)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode/100 != 2 {
		return problem.New(problem.Unavailable, "%s answered %d", req.URL.Host, resp.StatusCode)
	}
	return nil
}

// Methods are the HTTP methods that a call may use.
var Methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete}

func (c *Client) request(ctx context.Context, call Call) (*http.Request, error) {
	u, err := parse(call.URL)
	if err != nil {
		return nil, problem.New(problem.Forbidden, "the URL of the action %v", err)
	}
	if !slices.Contains(Methods, call.Method) {
		return nil, problem.New(problem.Forbidden, "an action is never called with %s", call.Method)
	}
	var body io.Reader
	if call.Method == http.MethodGet {
		query := u.Query()
		for name, value := range call.Query {
			query.Set(name, value)
		}
		u.RawQuery = query.Encode()
	} else {
		text, err := json.Marshal(call.Body)
		if err != nil {
			return nil, fmt.Errorf("encode call: %w", err)
		}
		body = bytes.NewReader(text)
	}
	u.Fragment = ""
	req, err := http.NewRequestWithContext(ctx, call.Method, u.String(), body)
	if err != nil {
		return nil, problem.Wrap(problem.Forbidden, err, "the URL of the action cannot be called")
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", "littoral-policymanager")
	if call.ID != "" {
		req.Header.Set("Idempotency-Key", call.ID)
	}
	if call.Token {
		token, err := c.token(ctx, u)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req, nil
}

// token returns a token for the target. An issuer may ignore the requested audience, which is not a parameter of RFC
// 6749, and return a token for Littoral; its receiver could then use our rights here. Only hosts that a setting allows
// may get such a token. A token that cannot be parsed reveals no audience, and is sent.
func (c *Client) token(ctx context.Context, u *url.URL) (string, error) {
	token, err := c.tokens.Token(ctx, audience(u))
	if err != nil {
		return "", err
	}
	if auth.MeantFor(token, c.config.Audience) && !c.allowed.host(u.Hostname()) {
		return "", problem.New(problem.Forbidden,
			"%s is not called: the token issuer gives no token for %s, but one for %s itself, which the action must not send there",
			u.Host, audience(u), c.config.Audience)
	}
	return token, nil
}

// audience is the target's name for the token issuer: its origin.
func audience(u *url.URL) string { return u.Scheme + "://" + u.Host }
