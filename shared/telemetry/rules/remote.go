package rules

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/littoral-project/littoral/shared/problem"
)

// Remote sends the requests of the backends that use HTTP.
type Remote struct {
	base   *url.URL
	header http.Header
	http   *http.Client
}

// NewRemote returns a Remote without connecting; the headers are sent with every request. The error says what is wrong
// with the address.
func NewRemote(base string, header http.Header, client *http.Client) (*Remote, error) {
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("RULES_URL must be a URL as http://mimir:8080/prometheus")
	}
	return &Remote{base: u, header: header, http: client}, nil
}

// maxAnswer limits the size of an answer, in bytes.
const maxAnswer = 64 << 20

// Do sends a request to the path below the base, and returns the body of a 2xx answer. It escapes the parts of the
// path. Other answers are errors: NotFound for 404, Invalid if the backend rejects the rules, else Unavailable.
func (r *Remote) Do(ctx context.Context, method, media string, body []byte, path ...string) ([]byte, error) {
	escaped := make([]string, len(path))
	for i, part := range path {
		escaped[i] = url.PathEscape(part)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.base.JoinPath(escaped...).String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return nil, problem.Wrap(problem.Unavailable, err, "the rules back end is away; try again")
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, problem.Wrap(problem.Unavailable, err, "the rules back end broke off; try again")
	}
	if resp.StatusCode/100 == 2 {
		return answer, nil
	}
	return nil, refusal(resp.StatusCode, answer)
}

func refusal(status int, answer []byte) error {
	text := problem.Brief(bytes.TrimSpace(answer), 500)
	switch status {
	case http.StatusNotFound:
		return problem.New(problem.NotFound, "the rules back end knows nothing of it: %s", text)
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		return problem.New(problem.Invalid, "the rules back end refuses the rules: %s", text)
	default: // for us to correct (401, 403) or for the backend (5xx): in both cases it may succeed later
		cause := fmt.Errorf("the rules back end answered %d: %s", status, text)
		return problem.Wrap(problem.Unavailable, cause, "the rules back end answered %d; try again", status)
	}
}
