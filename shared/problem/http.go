package problem

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// ContentType is the media type of RFC 9457.
const ContentType = "application/problem+json"

// RetryAfter is how long a caller should wait if the store or another dependency cannot be reached.
const RetryAfter = 2 * time.Second

var statuses = map[Kind]int{
	Malformed:          http.StatusBadRequest,
	Unauthenticated:    http.StatusUnauthorized,
	Forbidden:          http.StatusForbidden,
	NotFound:           http.StatusNotFound,
	MethodNotAllowed:   http.StatusMethodNotAllowed,
	NotAcceptable:      http.StatusNotAcceptable,
	Conflict:           http.StatusConflict,
	PreconditionFailed: http.StatusPreconditionFailed,
	TooLarge:           http.StatusRequestEntityTooLarge,
	UnsupportedMedia:   http.StatusUnsupportedMediaType,
	Invalid:            http.StatusUnprocessableEntity,
	Internal:           http.StatusInternalServerError,
	NotImplemented:     http.StatusNotImplemented,
	Unavailable:        http.StatusServiceUnavailable,
}

// Status returns the HTTP status of the kind; 500 for an unknown kind.
func (k Kind) Status() int {
	if s, ok := statuses[k]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// Document is the RFC 9457 body. TraceID identifies the request in the logs. StatusCode repeats the status under the
// name that clients of ICOS's policy manager read.
type Document struct {
	Type       string  `json:"type"`
	Title      string  `json:"title"`
	Status     int     `json:"status"`
	StatusCode int     `json:"status_code"`
	Detail     string  `json:"detail,omitempty"`
	TraceID    string  `json:"traceId,omitempty"`
	Errors     []Field `json:"errors,omitempty"`
	Warnings   []Field `json:"warnings,omitempty"`
}

// Of returns the document for err.
func Of(err error, traceID string) Document {
	kind := KindOf(err)
	d := Document{
		Type:       "https://littoral.dev/problems/" + string(kind),
		Title:      http.StatusText(kind.Status()),
		Status:     kind.Status(),
		StatusCode: kind.Status(),
		TraceID:    traceID,
	}
	var e *Error
	if errors.As(err, &e) && kind != Internal {
		d.Detail, d.Errors, d.Warnings = e.Detail, e.Fields, e.Warnings
	} else {
		d.Detail = "Something failed inside; the trace id finds it in the logs."
	}
	return d
}

// Write sends err as application/problem+json.
func Write(w http.ResponseWriter, err error, traceID string) {
	d := Of(err, traceID)
	h := w.Header()
	h.Set("Content-Type", ContentType)
	switch d.Status {
	case http.StatusUnauthorized:
		if h.Get("WWW-Authenticate") == "" {
			h.Set("WWW-Authenticate", `Bearer realm="littoral"`)
		}
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", strconv.Itoa(int(RetryAfter.Seconds())))
	}
	w.WriteHeader(d.Status)
	_ = json.NewEncoder(w).Encode(d) // fails only if the caller has gone
}
