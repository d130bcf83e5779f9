package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// Client calls Littoral. Its errors are *Error for a refusal by the server, which unwraps to *problem.Error,
// *Unreachable if there is no server, *Moved if it has another URL, or errors of the context. It is safe for concurrent
// use.
type Client struct {
	Base  string                 // base URL of all routes, e.g. http://127.0.0.1:8080
	Token func() (string, error) // returns the access token of each request; nil or an empty token = none is sent
	HTTP  *http.Client           // nil = a default one
}

// ErrNoURL is wrapped by the error of each call of a Client whose Base is not a URL, for instance because it lacks the
// scheme.
var ErrNoURL = errors.New("the server must be a URL such as http://127.0.0.1:8080")

// ErrNoToken is the error of each call of a Client whose Token returns text that cannot be put into a header.
var ErrNoToken = errors.New("access token: it has characters that no token has")

// ErrBrokenOff is wrapped by the error of a call if the connection ended in the middle of the answer, for instance
// because the server stopped.
var ErrBrokenOff = errors.New("broke off")

// StaticToken returns a token source that always returns token, without surrounding space.
func StaticToken(token string) func() (string, error) {
	token = strings.TrimSpace(token)
	return func() (string, error) { return token, nil }
}

// TokenFile returns a token source that reads the file each time, since its content is renewed before the token
// expires.
func TokenFile(path string) func() (string, error) {
	return func() (string, error) {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		return strings.TrimSpace(string(text)), nil
	}
}

// AddressFile is the file in the home of a laptop host that holds its base URL while it runs.
const AddressFile = "address"

// NewKey returns a fresh Idempotency-Key.
func NewKey() string { return rand.Text() }

const (
	attempts = 5                // of one idempotent call while the server answers that it is unavailable
	maxPause = 10 * time.Second // between two attempts, whatever Retry-After says
	maxBody  = 64 << 20         // of an answer: a list of thousands of applications with their objects
)

// request is one call. Only an idempotent one is retried.
type request struct {
	method     string
	path       string
	query      url.Values
	media      string
	body       []byte
	key        string // Idempotency-Key
	first      bool   // If-None-Match: *
	last       string // Last-Event-ID
	idempotent bool
}

// head is the part of an answer besides its body.
type head struct {
	status int
	header http.Header
}

// do sends the request, with retries while the server asks for them, and decodes the answer into into unless that is
// nil.
func (c *Client) do(ctx context.Context, r request, into any) (head, error) {
	for attempt := 1; ; attempt++ {
		resp, err := c.send(ctx, r)
		if err != nil {
			return head{}, err
		}
		h := head{resp.StatusCode, resp.Header}
		if h.status/100 == 2 {
			return h, decode(resp, into)
		}
		refusal := readError(resp)
		if h.status != http.StatusServiceUnavailable || !r.idempotent || attempt == attempts {
			return h, refusal
		}
		if pause(ctx, retryAfter(h.header)) != nil {
			return h, refusal // says more than a context error
		}
	}
}

func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	if u, err := url.Parse(c.Base); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%w, not %q", ErrNoURL, c.Base)
	}
	address := strings.TrimSuffix(c.Base, "/") + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	if r.media != "" {
		req.Header.Set("Content-Type", r.media)
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	if r.first {
		req.Header.Set("If-None-Match", "*")
	}
	if r.last != "" {
		req.Header.Set("Last-Event-ID", r.last)
	}
	if c.Token != nil {
		token, err := c.Token()
		if err != nil {
			return nil, fmt.Errorf("access token: %w", err)
		}
		if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, ErrNoToken
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
	}
	client := http.Client{}
	if c.HTTP != nil {
		client = *c.HTTP
	}
	if client.CheckRedirect == nil {
		client.CheckRedirect = refuseChangedMethod
	}
	resp, err := client.Do(req)
	var moved *Moved
	switch {
	case err == nil:
		return resp, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &moved):
		moved.Base, moved.To = c.Base, strings.TrimSuffix(moved.To, r.path)
		return nil, moved
	}
	return nil, &Unreachable{Base: c.Base, Err: err}
}

// maxRedirects is how many redirects are followed: net/http's default.
const maxRedirects = 10

// refuseChangedMethod refuses a redirect that turns a change into a GET (RFC 9110, 15.4): it would succeed without changing
// anything.
func refuseChangedMethod(r *http.Request, via []*http.Request) error {
	switch {
	case r.Method != via[0].Method:
		to := *r.URL
		to.RawQuery, to.Fragment = "", ""
		return &Moved{Method: via[0].Method, To: to.String()}
	case len(via) >= maxRedirects:
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	return nil
}

func decode(resp *http.Response, into any) error {
	defer drain(resp)
	if into == nil || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		return fmt.Errorf("the answer of %s %w: %w", resp.Request.URL.Path, ErrBrokenOff, err)
	case len(body) > maxBody:
		return fmt.Errorf("the answer of %s has more than %d bytes", resp.Request.URL.Path, maxBody)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the answer of %s is not what Littoral gives: %w", resp.Request.URL, err)
	}
	return nil
}

// drain reads the rest, so that the connection can be reused.
func drain(resp *http.Response) {
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
	_ = resp.Body.Close()
}

func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return time.Second
	}
	return min(time.Duration(seconds)*time.Second, maxPause)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// list reads every page of a listing by following the links to the next one.
func list[T any](ctx context.Context, c *Client, r request) ([]T, error) {
	all := []T{}
	for {
		var page []T
		h, err := c.do(ctx, r, &page)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		cursor := linked(h.header.Values("Link"), "next", "cursor")
		if cursor == "" || cursor == r.query.Get("cursor") {
			return all, nil
		}
		r.query.Set("cursor", cursor)
	}
}

// linked finds the Link to another page (RFC 8288) and returns the one parameter that differs; "" if there is no such
// link. Only the parameter is taken from the link: our own path is kept, since a gateway may add a prefix to it.
func linked(headers []string, rel, parameter string) string {
	for _, header := range headers {
		for link := range strings.SplitSeq(header, ",") {
			target, params, ok := strings.Cut(strings.TrimSpace(link), ">")
			if !ok || !strings.HasPrefix(target, "<") || !hasRel(params, rel) {
				continue
			}
			if u, err := url.Parse(target[1:]); err == nil {
				return u.Query().Get(parameter)
			}
		}
	}
	return ""
}

func hasRel(params, rel string) bool {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(name, "rel") && strings.EqualFold(strings.Trim(value, `"`), rel) {
			return true
		}
	}
	return false
}
