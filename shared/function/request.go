package function

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/decode"
	"github.com/littoral-project/littoral/shared/etag"
	"github.com/littoral-project/littoral/shared/paging"
	"github.com/littoral-project/littoral/shared/problem"
)

// PathID returns the id in the path parameter. The error is Malformed.
func PathID(r *http.Request, param string) (uuid.UUID, error) {
	return parseID(param, r.PathValue(param))
}

func parseID(name, text string) (uuid.UUID, error) {
	// uuid.Parse also takes forms such as urn:uuid: and {…}; the API knows one form.
	id, err := uuid.Parse(text)
	if err != nil || len(text) != 36 {
		return uuid.Nil, problem.New(problem.Malformed, "%s %q is not a UUID", name, text)
	}
	return id, nil
}

// Body reads the whole request body. An empty one is Malformed, one over the limit TooLarge.
func Body(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, err
	case err != nil:
		return nil, problem.Wrap(problem.Malformed, err, "the body cannot be read")
	case len(body) == 0:
		return nil, problem.New(problem.Malformed, "the body is empty")
	}
	return body, nil
}

// WriteJSON answers v with the status, and its entity tag if it has one.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	if tagged, ok := v.(etag.Tagged); ok {
		w.Header().Set("ETag", tagged.ETag())
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the caller has gone if this fails
	return nil
}

// DecodeJSON reads the body as one JSON value into v. Unreadable JSON is Malformed. Values that do not fit v, or that
// its own UnmarshalJSON or UnmarshalText refuses, are Invalid: all are listed, each with its path. More values than a
// function has memory for are TooLarge.
func DecodeJSON(r *http.Request, v any) error {
	body, err := Body(r)
	if err != nil {
		return err
	}
	return decode.JSON(body, v)
}

// Query reads query parameters and collects every fault in them.
type Query struct {
	values url.Values
	faults problem.Faults
}

// NewQuery reads the query of r. Only the named parameters are allowed.
func NewQuery(r *http.Request, known ...string) *Query {
	q := &Query{}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		q.faults.Add("query", 0, "cannot be read: %v", err)
	}
	q.values = values
	for name, given := range values {
		switch {
		case len(known) == 0:
			q.faults.Add("query."+name, 0, "is not known here, and neither is any other")
		case !slices.Contains(known, name):
			q.faults.Add("query."+name, 0, "is not known here; known are %s", strings.Join(known, ", "))
		case len(given) > 1:
			q.faults.Add("query."+name, 0, "is given %d times", len(given))
		}
	}
	return q
}

// Text returns the parameter, "" when it is not given.
func (q *Query) Text(name string) string {
	v := q.values.Get(name)
	switch {
	case !utf8.ValidString(v):
		q.faults.Add("query."+name, 0, "is not UTF-8")
	case strings.ContainsRune(v, 0):
		q.faults.Add("query."+name, 0, "holds a NUL character")
	default:
		return v
	}
	return ""
}

// Given returns the parameters that are given, so that somebody else can be asked by them.
func (q *Query) Given() url.Values {
	given := url.Values{}
	for name := range q.values {
		if text := q.Text(name); text != "" {
			given.Set(name, text)
		}
	}
	return given
}

// OneOf returns the parameter, which must be one of allowed or absent.
func (q *Query) OneOf(name string, allowed ...string) string {
	v := q.Text(name)
	if v == "" {
		return ""
	}
	for _, one := range allowed {
		if strings.EqualFold(one, v) {
			return one
		}
	}
	q.faults.Add("query."+name, 0, "%q is not one of %s", v, strings.Join(allowed, ", "))
	return v
}

// Bool returns the parameter, in any spelling that ICOS reads; false when it is not given.
func (q *Query) Bool(name string) bool {
	switch v := q.Text(name); strings.ToLower(v) {
	case "true", "1", "yes", "on", "t", "y":
		return true
	case "", "false", "0", "no", "off", "f", "n":
	default:
		q.faults.Add("query."+name, 0, "%q is neither true nor false", v)
	}
	return false
}

// ID returns the parameter as a UUID, nil when it is not given.
func (q *Query) ID(name string) *uuid.UUID {
	v := q.Text(name)
	if v == "" {
		return nil
	}
	id, err := parseID(name, v)
	if err != nil {
		q.faults.Add("query."+name, 0, "%q is not a UUID", v)
		return nil
	}
	return &id
}

// Int returns the parameter within low..high, or fallback when it is not given.
func (q *Query) Int(name string, fallback, low, high int64) int64 {
	v := q.Text(name)
	if v == "" {
		return fallback
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < low || n > high {
		q.faults.Add("query."+name, 0, "%q is not a number from %d to %d", v, low, high)
		return fallback
	}
	return n
}

// Instant returns the parameter, a time or how long before now it was.
func (q *Query) Instant(name string, now time.Time) (at time.Time, given bool) {
	text := q.Text(name)
	if text == "" {
		return time.Time{}, false
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), true
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Year() < 1970 {
		q.Fault(name, "%q is neither a duration such as 10m nor a time such as 2026-01-02T15:04:05Z", text)
	}
	return at, true
}

// Either adds a fault when both parameters are given.
func (q *Query) Either(one, other string) {
	if q.Text(one) != "" && q.Text(other) != "" {
		q.faults.Add("query."+other, 0, "does not go together with %s", one)
	}
}

// Fault adds a fault in a parameter that only the caller can judge.
func (q *Query) Fault(name, format string, args ...any) {
	q.faults.Add("query."+name, 0, format, args...)
}

// Page reads limit and cursor.
func (q *Query) Page() paging.Page {
	p := paging.Page{Limit: int(q.Int("limit", paging.DefaultLimit, 1, paging.MaxLimit))}
	if text := q.Text("cursor"); text != "" {
		raw, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || json.Unmarshal(raw, &p.After) != nil {
			q.faults.Add("query.cursor", 0, "is not a cursor that this API gave")
		}
	}
	return p
}

// Err returns all faults as one Malformed error (not Invalid: they are in the query, not in a document).
func (q *Query) Err() error {
	err := q.faults.Err("the query is not understood")
	var e *problem.Error
	if errors.As(err, &e) {
		e.Kind = problem.Malformed
	}
	return err
}

// linkNext tells the caller where the next page begins.
func linkNext(w http.ResponseWriter, r *http.Request, last paging.Cursor) {
	raw, err := json.Marshal(last)
	if err != nil {
		return // a time and a UUID always encode
	}
	Link(w, r, "next", "cursor", base64.RawURLEncoding.EncodeToString(raw))
}

// Link adds a Link header (RFC 8288) to another page: the same request with one parameter changed. A header, since the
// body must stay the plain array that ICOS clients read.
func Link(w http.ResponseWriter, r *http.Request, rel, parameter, value string) {
	page := *r.URL
	query := page.Query()
	query.Set(parameter, value)
	page.RawQuery = query.Encode()
	w.Header().Set("Link", fmt.Sprintf("<%s>; rel=%q", page.RequestURI(), rel))
}

// Document reads a body that holds a descriptor: YAML or JSON under any of the media types that clients send it with.
func Document(r *http.Request) ([]byte, error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.Header.Get("Content-Type") != "" && err != nil {
		return nil, problem.New(problem.Malformed, "Content-Type %q cannot be read", r.Header.Get("Content-Type"))
	}
	switch media {
	case "", "text/plain", "application/json", "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml",
		"application/octet-stream", "application/x-www-form-urlencoded": // the last is what curl sends unasked
		return Body(r)
	}
	return nil, problem.New(problem.UnsupportedMedia, "send the descriptor as application/yaml, application/json or text/plain, not %s", media)
}

// WritePage answers a list, with a Link to the next page if this one is full: as long as p allows, or cut short because
// its rows are large.
func WritePage[T any](w http.ResponseWriter, r *http.Request, p paging.Page, list []T, cut bool, cursor func(T) paging.Cursor) error {
	if (cut || len(list) == p.Limit) && len(list) > 0 {
		linkNext(w, r, cursor(list[len(list)-1]))
	}
	if list == nil {
		list = []T{}
	}
	return WriteJSON(w, http.StatusOK, list)
}
