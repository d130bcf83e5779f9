package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/littoral-project/littoral/shared/problem"
)

// Error is an error answer of a server.
type Error struct {
	Problem *problem.Error
	Status  int
	TraceID string // identifies the request in the server's logs
}

func (e *Error) Error() string { return e.Problem.Error() }
func (e *Error) Unwrap() error { return e.Problem }

// Unreachable means that no server answered.
type Unreachable struct {
	Base string
	Err  error
}

func (e *Unreachable) Error() string {
	cause := e.Err
	var request *url.Error
	if errors.As(cause, &request) {
		cause = request.Err // without the method and the whole URL
	}
	return fmt.Sprintf("no server answers at %s: %v", e.Base, cause)
}

func (e *Unreachable) Unwrap() error { return e.Err }

// Moved means that the server has another URL, and that the change was not carried out.
type Moved struct {
	Base   string
	Method string
	To     string // the base URL to use instead, or the whole URL if its path is different
}

func (e *Moved) Error() string {
	return fmt.Sprintf("%s redirects to %s, where a %s would arrive as a GET; nothing was changed", e.Base, e.To, e.Method)
}

// readError decodes the problem document of an answer; anything else is handled by foreign.
func readError(resp *http.Response) *Error {
	defer drain(resp)
	e := &Error{Status: resp.StatusCode}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var d problem.Document
	if media != problem.ContentType || json.Unmarshal(body, &d) != nil {
		e.Problem = foreign(resp)
		return e
	}
	e.TraceID = d.TraceID
	e.Problem = &problem.Error{Kind: kindOf(resp.StatusCode), Detail: d.Detail, Fields: d.Errors, Warnings: d.Warnings}
	if e.Problem.Detail == "" {
		e.Problem.Detail = d.Title
	}
	if kind, ours := strings.CutPrefix(d.Type, problemTypes); ours {
		e.Problem.Kind = problem.Kind(kind)
	}
	return e
}

// foreign makes a problem from an answer that is not Littoral's but comes from a proxy or another server. Its kind
// follows from the status, with two exceptions: a 404 does not mean that the requested object is missing, and a 502 or
// 504 is expected to be temporary.
func foreign(resp *http.Response) *problem.Error {
	p := &problem.Error{Kind: kindOf(resp.StatusCode), Detail: "the server answered " + resp.Status}
	switch resp.StatusCode {
	case http.StatusNotFound:
		p.Kind = problem.Internal
		p.Detail += ", but not as Littoral does: it is another server, or something in front of Littoral answered"
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		p.Kind = problem.Unavailable
	}
	return p
}

const problemTypes = "https://littoral.dev/problems/"

// kindOf returns the kind with that HTTP status; Internal if there is none.
func kindOf(status int) problem.Kind {
	for _, k := range []problem.Kind{
		problem.Malformed, problem.Unauthenticated, problem.Forbidden, problem.NotFound, problem.MethodNotAllowed,
		problem.Conflict, problem.PreconditionFailed, problem.TooLarge, problem.UnsupportedMedia, problem.Invalid,
		problem.Unavailable,
	} {
		if k.Status() == status {
			return k
		}
	}
	return problem.Internal
}
