package logs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/littoral-project/littoral/shared/problem"
)

// Remote is a log store that is called over HTTP.
type Remote struct {
	base   *url.URL
	header http.Header
	client *http.Client
}

// maxAnswer bounds what is read of an answer: the greatest number of lines of a usual length.
const maxAnswer = 64 << 20

// NewRemote returns a caller of the store at the base URL, with these headers on each call.
func NewRemote(base string, header http.Header, client *http.Client) (*Remote, error) {
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("LOGS_URL must be a URL as http://victorialogs:9428")
	}
	return &Remote{u, header, client}, nil
}

// Call sends a body, or asks when there is none, and returns the answer.
func (r *Remote) Call(ctx context.Context, path string, query url.Values, media string, body []byte) ([]byte, error) {
	method, reader := http.MethodGet, io.Reader(http.NoBody)
	if body != nil {
		method, reader = http.MethodPost, bytes.NewReader(body)
	}
	at := r.base.JoinPath(path)
	at.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, at.String(), reader)
	if err != nil {
		return nil, problem.Wrap(problem.Unavailable, err, "the log store cannot be asked")
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, problem.Wrap(problem.Unavailable, err, "the log store cannot be reached")
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, problem.Wrap(problem.Unavailable, err, "the log store broke off its answer")
	case resp.StatusCode/100 != 2:
		return nil, problem.New(problem.Unavailable, "the log store answered %s: %s", resp.Status, problem.Brief(string(answer), 200))
	case len(answer) > maxAnswer:
		return nil, problem.New(problem.Unavailable, "the log store answered with more than %d bytes", maxAnswer)
	}
	return answer, nil
}
