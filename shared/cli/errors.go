package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/problem"
)

// advised is an error with what to do about it.
type advised struct {
	err    error
	advice string
}

func (e *advised) Error() string { return e.err.Error() }
func (e *advised) Unwrap() error { return e.err }

func advise(err error, format string, args ...any) error {
	return &advised{err, fmt.Sprintf(format, args...)}
}

// explain writes an error for people: what happened, every field at fault, and what to do next.
func (s *session) explain(err error) string {
	var b strings.Builder
	var refused *api.Error
	var fault *problem.Error
	if errors.As(err, &fault) {
		b.WriteString(printable(fault.Detail))
		for _, f := range fault.Fields {
			fmt.Fprintf(&b, "\n  %s", printable(f.String()))
			if f.Excerpt != "" {
				for line := range strings.SplitSeq(f.Excerpt, "\n") {
					fmt.Fprintf(&b, "\n      %s", printable(strings.ReplaceAll(line, "\t", " ")))
				}
			}
		}
		for _, w := range fault.Warnings {
			fmt.Fprintf(&b, "\n  warning: %s", printable(w.String()))
		}
		if !errors.As(err, &refused) {
			refused = &api.Error{Problem: fault}
		}
	} else {
		b.WriteString(printable(err.Error()))
	}
	if advice := s.advice(err, refused); advice != "" {
		b.WriteString("\n" + advice)
	}
	return b.String()
}

// advice says what to do about the error, "" when the error says it itself.
func (s *session) advice(err error, refused *api.Error) string {
	var given *advised
	var away *api.Unreachable
	var moved *api.Moved
	switch {
	case errors.As(err, &given):
		return given.advice
	case errors.As(err, &away) && s.named != "":
		return fmt.Sprintf("The context %s leads there. See: littoral context list; or start a host here with: littoral up", s.named)
	case errors.As(err, &moved):
		return "Check --server and LITTORAL_SERVER; the server seems to be at: --server " + printable(moved.To)
	case errors.Is(err, api.ErrNoURL):
		return "Check --server and LITTORAL_SERVER"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "Check --server and LITTORAL_SERVER; what answers there speaks http, not https"
	case errors.As(err, &away) && local(away.Base):
		return "Start one with: littoral up (or name another with --server or LITTORAL_SERVER)"
	case errors.As(err, &away):
		return "Check --server and LITTORAL_SERVER, or start one here with: littoral up"
	case errors.Is(err, api.ErrNoToken):
		return fmt.Sprintf("The token came from %s", s.token)
	case errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(err.Error(), "access token"):
		return "Name a file that exists with --token-file or LITTORAL_TOKEN_FILE"
	case errors.Is(err, context.DeadlineExceeded):
		return "It goes on without us; look again with: littoral get apps"
	case refused == nil:
		return ""
	}
	return s.adviceFor(refused)
}

func (s *session) adviceFor(e *api.Error) string {
	switch e.Problem.Kind {
	case problem.Unauthenticated:
		if s.token == "" {
			return "No access token was sent. Sign in with: littoral login; or name one with --token-file, LITTORAL_TOKEN or LITTORAL_TOKEN_FILE; " +
				`"littoral up" writes them to ./.littoral, so run this where it was started or set LITTORAL_HOME`
		}
		return fmt.Sprintf(
			`The token came from %s. "littoral up" renews its tokens while it runs; name another with --token-file`, s.token)
	case problem.Forbidden:
		return fmt.Sprintf("The token came from %s. With --token-file use one whose holder has that role, such as "+
			"./.littoral/token-admin", s.token)
	case problem.NotFound:
		if nothingThere(e) {
			return "Check --server and LITTORAL_SERVER: they name where all paths of Littoral begin"
		}
		return "See what there is with: littoral get apps"
	case problem.Conflict:
		return "Look at how it stands with: littoral get apps -o wide"
	case problem.Invalid, problem.Malformed:
		return "Nothing was changed. Correct this and try again"
	case problem.TooLarge:
		return "Nothing was changed. Make the descriptor smaller"
	case problem.Unavailable:
		return "The server is there but cannot work now. Try again in a moment"
	case problem.Internal:
		if e.TraceID != "" {
			return fmt.Sprintf("This is a fault of the server. Its log tells more under the trace id %s", printable(e.TraceID))
		}
		return "This is a fault of the server, or of something in front of it. Its log tells more"
	}
	return ""
}

// nothingThere reports whether the server does not know the path, rather than what the path names.
func nothingThere(e *api.Error) bool {
	return strings.HasPrefix(e.Problem.Detail, "there is nothing at")
}
