// Package problem is the error type of Littoral: a kind for machines, a detail for people, the faulty fields, and the
// RFC 9457 document made from these.
//
// Domain packages return *Error (or wrap one); only the HTTP edge turns it into a status. An error without a kind is
// internal: its text is only logged, and the caller gets the trace id instead.
package problem

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Kind is the stable, documented name of a class of failure; it is also the last part of the problem type URI.
type Kind string

// The kinds, each with its HTTP status.
const (
	Malformed          Kind = "malformed"           // 400: the request cannot be parsed
	Unauthenticated    Kind = "unauthenticated"     // 401: no valid token
	Forbidden          Kind = "forbidden"           // 403: the token lacks the role
	NotFound           Kind = "not-found"           // 404
	MethodNotAllowed   Kind = "method-not-allowed"  // 405
	NotAcceptable      Kind = "not-acceptable"      // 406: the acceptable part of the answer would be of no use
	Conflict           Kind = "conflict"            // 409: the state does not permit it
	PreconditionFailed Kind = "precondition-failed" // 412: the caller has another version
	TooLarge           Kind = "too-large"           // 413
	UnsupportedMedia   Kind = "unsupported-media"   // 415
	Invalid            Kind = "invalid"             // 422: well-formed, but with wrong content
	Internal           Kind = "internal"            // 500
	NotImplemented     Kind = "not-implemented"     // 501: this site does not have it
	Unavailable        Kind = "unavailable"         // 503: try again later
)

// Field is one fault in a request: its place and a description.
type Field struct {
	Path    string `json:"path"`              // e.g. components[1].requirements.cpu
	Line    int    `json:"line,omitempty"`    // 1-based line of a text document, 0 if it has none
	Column  int    `json:"column,omitempty"`  // where in that line of the value, in characters from 1; 0 = all of it
	Excerpt string `json:"excerpt,omitempty"` // that line of the value, and a caret at the column in a line below
	Detail  string `json:"detail"`
}

// Error is a failure with a kind.
type Error struct {
	Kind   Kind
	Detail string
	Fields []Field
	Err    error // the cause, for the log only

	Warnings []Field // what else is odd about the request, though it is not why it fails
}

// New returns an error of the kind with a formatted detail for people.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// Wrap is New with a cause, which is only logged.
func Wrap(kind Kind, err error, format string, args ...any) *Error {
	return &Error{Kind: kind, Detail: fmt.Sprintf(format, args...), Err: err}
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Detail)
	for i, f := range e.Fields {
		if i == 0 {
			b.WriteString(": ")
		} else {
			b.WriteString("; ")
		}
		b.WriteString(f.String())
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// WithWarnings adds warnings to err, if it is an *Error, so that the caller learns of everything at once.
func WithWarnings(err error, warnings []Field) error {
	var e *Error
	if errors.As(err, &e) {
		e.Warnings = append(e.Warnings, warnings...)
	}
	return err
}

func (e *Error) Unwrap() error { return e.Err }

func (f Field) String() string {
	if f.Line > 0 {
		return fmt.Sprintf("%s (line %d): %s", f.Path, f.Line, f.Detail)
	}
	return f.Path + ": " + f.Detail
}

// Texts writes each field as one line.
func Texts(fields []Field) []string {
	if len(fields) == 0 {
		return nil
	}
	texts := make([]string, len(fields))
	for i, f := range fields {
		texts[i] = f.String()
	}
	return texts
}

// Brief is the beginning of a text from outside, at most that many bytes, for quoting: such a text may have any length.
// It is valid UTF-8, and ends in "..." if it was truncated.
func Brief[T ~string | ~[]byte](text T, most int) string {
	if len(text) <= most {
		return strings.ToValidUTF8(string(text), "?")
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return strings.ToValidUTF8(string(text[:most]), "?") + "..."
}

// KindOf returns the kind of err at any depth; Internal if it has none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}

// Faults collects the field faults of one document so that all of them are reported at once.
type Faults struct {
	fields  []Field
	dropped int
}

// maxFaults limits the answer to a hostile document; further faults are counted, not listed.
const maxFaults = 100

// Add records a fault at path; line is 0 if the input has no lines.
func (f *Faults) Add(path string, line int, format string, args ...any) {
	if len(f.fields) >= maxFaults {
		f.dropped++ // without the cost of its text
		return
	}
	f.Append(Field{Path: path, Line: line, Detail: fmt.Sprintf(format, args...)})
}

// Append records the given faults.
func (f *Faults) Append(fields ...Field) {
	for _, field := range fields {
		if len(f.fields) >= maxFaults {
			f.dropped++
			continue
		}
		f.fields = append(f.fields, field)
	}
}

// Empty reports whether no fault was recorded.
func (f *Faults) Empty() bool { return len(f.fields) == 0 }

// Err returns an Invalid error with all recorded faults, or nil if there are none.
func (f *Faults) Err(detail string) error {
	if f.Empty() {
		return nil
	}
	if f.dropped > 0 {
		detail = fmt.Sprintf("%s (%d further faults not listed)", detail, f.dropped)
	}
	return &Error{Kind: Invalid, Detail: detail, Fields: f.fields}
}
