// Package nuvla is a client of the REST API of Nuvla: resources by id, searches by CIMI filters, and actions. It signs in
// by an API key, keeps the session cookie, and renews it before it ends. What a newcomer gets wrong: the API answers 403,
// never 401, both to a session that has ended and to rights that are missing, so a 403 is tried once more after signing in
// anew.
package nuvla

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Client calls one server. It is safe for concurrent use.
type Client struct {
	base        *url.URL
	key, secret string
	http        *http.Client

	mu      sync.Mutex // held while signing in, so that calls at the same time sign in once
	cookie  *http.Cookie
	renewal time.Time // when the session is renewed
}

// Limits of one call.
const (
	timeout   = 20 * time.Second
	attempts  = 4                // of a call that is answered 429
	longest   = 10 * time.Second // between two of them, whatever Retry-After says
	readLimit = 32 << 20
	page      = 200
	// Window is how many results of a search the server hands out at most (the limit of its search engine).
	Window = 10_000
)

// New returns a client of the server at the address, which may end in /api or not. Nothing is dialled. transport may be
// nil.
func New(address, key, secret string, transport http.RoundTripper) (*Client, error) {
	base, err := url.Parse(strings.TrimSuffix(strings.TrimSuffix(address, "/"), "/api"))
	switch {
	case err != nil:
		return nil, err
	case base.Scheme != "https" && base.Scheme != "http", base.Host == "":
		return nil, fmt.Errorf("%q is no address such as https://nuvla.io", address)
	case key == "" || secret == "":
		return nil, errors.New("an API key and its secret are needed")
	}
	return &Client{base: base, key: key, secret: secret, http: &http.Client{
		Transport: transport, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Error is an answer that says no.
type Error struct {
	Status   int
	Message  string
	Resource string // that it is about; empty = unknown
}

func (e *Error) Error() string { return fmt.Sprintf("Nuvla answers %d: %s", e.Status, e.Message) }

// IsStatus reports whether the error is an answer with one of the codes.
func IsStatus(err error, codes ...int) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	for _, code := range codes {
		if e.Status == code {
			return true
		}
	}
	return false
}

// Get reads a resource, "<type>/<uuid>".
func (c *Client) Get(ctx context.Context, id string, into any) error {
	return c.call(ctx, http.MethodGet, id, nil, nil, into)
}

// Create makes a resource and returns its id.
func (c *Client) Create(ctx context.Context, kind string, body any) (string, error) {
	var made struct {
		ID string `json:"resource-id"`
	}
	err := c.call(ctx, http.MethodPost, kind, nil, body, &made)
	if err == nil && made.ID == "" {
		err = fmt.Errorf("Nuvla names no resource that it has made of type %s", kind)
	}
	return made.ID, err
}

// Edit changes the attributes of a resource that the body has.
func (c *Client) Edit(ctx context.Context, id string, body any) error {
	return c.call(ctx, http.MethodPut, id, nil, body, nil)
}

// Delete deletes a resource. One that is gone is no error.
func (c *Client) Delete(ctx context.Context, id string) error {
	if err := c.call(ctx, http.MethodDelete, id, nil, nil, nil); !IsStatus(err, http.StatusNotFound) {
		return err
	}
	return nil
}

// Act calls an action of a resource and returns the id of the job that carries it out, if there is one.
func (c *Client) Act(ctx context.Context, id, action string, body any) (string, error) {
	if body == nil {
		body = struct{}{}
	}
	var started struct {
		Location string `json:"location"`
	}
	err := c.call(ctx, http.MethodPost, id+"/"+action, nil, body, &started)
	return started.Location, err
}

// Query is what to search for.
type Query struct {
	Filter string
	Order  string // "attribute:asc" or "attribute:desc"; empty = by id
	Select string // attributes, separated by commas; empty = all
	Most   int    // how many at most; 0 = all
}

// Search hands each resource of the type that the filter matches to found, page by page.
func Search[T any](ctx context.Context, c *Client, kind string, q Query, found func(T) error) error {
	if q.Order == "" {
		q.Order = "id:asc"
	}
	for seen := 0; ; {
		last := seen + page
		if q.Most > 0 {
			last = min(last, q.Most)
		}
		query := url.Values{
			"first": {strconv.Itoa(seen + 1)}, "last": {strconv.Itoa(last)}, "orderby": {q.Order},
		}
		if q.Filter != "" {
			query.Set("filter", q.Filter)
		}
		if q.Select != "" {
			query.Set("select", q.Select)
		}
		var answer struct {
			Count     int `json:"count"`
			Resources []T `json:"resources"`
		}
		if err := c.call(ctx, http.MethodGet, kind, query, nil, &answer); err != nil {
			return err
		}
		if q.Most == 0 && answer.Count > Window {
			return fmt.Errorf("Nuvla has %d of type %s, and hands out %d at most", answer.Count, kind, Window)
		}
		for _, r := range answer.Resources {
			if err := found(r); err != nil {
				return err
			}
		}
		seen += len(answer.Resources)
		if len(answer.Resources) == 0 || seen >= answer.Count || seen >= q.Most && q.Most > 0 {
			return nil
		}
	}
}

// List returns what Search finds.
func List[T any](ctx context.Context, c *Client, kind string, q Query) (all []T, err error) {
	err = Search(ctx, c, kind, q, func(one T) error {
		all = append(all, one)
		return nil
	})
	return all, err
}

// call signs in if there is no session, or when the session turns out to have ended, and waits as the server demands when
// it has had too many calls.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, body, into any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	anew := false
	for try := 1; ; try++ {
		cookie, fresh, err := c.session(ctx)
		if err != nil {
			return err
		}
		answer, err := c.send(ctx, method, path, query, text, cookie)
		if err != nil {
			return err
		}
		switch code := answer.status; {
		case (code == http.StatusForbidden || code == http.StatusUnauthorized) && !fresh && !anew:
			anew = true
			c.forget(cookie)
		case code == http.StatusTooManyRequests && try < attempts:
			if err := pause(ctx, answer.wait, try); err != nil {
				return errors.Join(answer.err(), err)
			}
		case code >= http.StatusBadRequest:
			return answer.err()
		default:
			return answer.read(into)
		}
	}
}

// answer is what the server has answered.
type answer struct {
	status int
	wait   string // Retry-After
	cookie *http.Cookie
	body   []byte
}

func (a *answer) read(into any) error {
	if into == nil || len(a.body) == 0 {
		return nil
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		return fmt.Errorf("what Nuvla answers cannot be read: %w", err)
	}
	return nil
}

// err makes an error of the answer, in the form of the API or of a gateway in front of it.
func (a *answer) err() error {
	var said struct {
		Message  string `json:"message"`
		Resource string `json:"resource-id"`
		Error    struct {
			Reason string `json:"reason"`
		} `json:"error"`
	}
	_ = json.Unmarshal(a.body, &said) // another form says nothing
	for _, text := range []string{said.Message, said.Error.Reason, http.StatusText(a.status)} {
		if text != "" {
			const most = 500
			return &Error{Status: a.status, Message: text[:min(most, len(text))], Resource: said.Resource}
		}
	}
	return &Error{Status: a.status}
}

func (c *Client) send(
	ctx context.Context, method, path string, query url.Values, body []byte, cookie *http.Cookie,
) (*answer, error) {
	at := c.base.JoinPath("api", path)
	at.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if cookie != nil {
		r.AddCookie(&http.Cookie{Name: cookie.Name, Value: cookie.Value})
	}
	res, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, readLimit+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > readLimit:
		return nil, fmt.Errorf("Nuvla answers more than %d bytes", readLimit)
	}
	a := &answer{status: res.StatusCode, wait: res.Header.Get("Retry-After"), body: text}
	for _, set := range res.Cookies() {
		if strings.HasSuffix(set.Name, "sixsq.nuvla.cookie") {
			a.cookie = set
		}
	}
	return a, nil
}

// session returns the cookie of the session. fresh = it was signed in for just now.
func (c *Client) session(ctx context.Context) (cookie *http.Cookie, fresh bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cookie != nil && time.Now().Before(c.renewal) {
		return c.cookie, false, nil
	}
	body, err := json.Marshal(map[string]any{"template": map[string]string{
		"href": "session-template/api-key", "key": c.key, "secret": c.secret,
	}})
	if err != nil {
		return nil, false, err
	}
	for try := 1; ; try++ {
		a, err := c.send(ctx, http.MethodPost, "session", nil, body, nil)
		switch {
		case err != nil:
			return nil, false, err
		case a.status == http.StatusTooManyRequests && try < attempts:
			if err := pause(ctx, a.wait, try); err != nil {
				return nil, false, errors.Join(a.err(), err)
			}
			continue
		case a.status >= http.StatusBadRequest:
			return nil, false, a.err()
		case a.cookie == nil:
			return nil, false, errors.New("Nuvla signs in without a cookie")
		}
		c.cookie, c.renewal = a.cookie, renewal(a.cookie, time.Now())
		return c.cookie, true, nil
	}
}

// renewal is when a session that begins now is renewed: after nine tenths of its life, or of an hour if the server does
// not say how long it lasts.
func renewal(cookie *http.Cookie, now time.Time) time.Time {
	life := time.Hour
	switch {
	case cookie.MaxAge > 0:
		life = time.Duration(cookie.MaxAge) * time.Second
	case !cookie.Expires.IsZero():
		life = cookie.Expires.Sub(now)
	}
	return now.Add(life / 10 * 9)
}

// forget ends the session, unless another call has begun a new one.
func (c *Client) forget(cookie *http.Cookie) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cookie == cookie {
		c.cookie = nil
	}
}

// pause waits as long as the server demands, or twice as long as the last time, with up to half of it more, so that not
// all callers come back at once. The error says that there is not so much time.
func pause(ctx context.Context, wait string, try int) error {
	d := time.Duration(1<<try) * 125 * time.Millisecond
	if seconds, err := strconv.Atoi(wait); err == nil && seconds >= 0 {
		d = time.Duration(min(seconds, int(longest/time.Second))) * time.Second
	}
	d += rand.N(d/2 + time.Millisecond)
	if end, ends := ctx.Deadline(); ends && time.Until(end) < d {
		return context.DeadlineExceeded
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Equal returns the filter for resources whose attribute has the value. A value that the grammar of filters has no way to
// write is an error, so that nobody widens a search by a name.
func Equal(attribute, value string) (string, error) { return compare(attribute, "=", value) }

// Prefix returns the filter for resources whose attribute begins with the value.
func Prefix(attribute, value string) (string, error) { return compare(attribute, "^=", value) }

func compare(attribute, operator, value string) (string, error) {
	quote := "'"
	if strings.Contains(value, quote) {
		quote = `"`
	}
	odd := func(r rune) bool { return r < ' ' || r == '\\' || r == 0x7f }
	if strings.Contains(value, quote) || strings.ContainsFunc(value, odd) {
		return "", fmt.Errorf("%q cannot be searched for", value)
	}
	return attribute + operator + quote + value + quote, nil
}
