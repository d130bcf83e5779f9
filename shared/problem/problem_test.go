package problem_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/problem"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	var faults problem.Faults
	faults.Add("components[0].name", 3, "must not be empty")
	faults.Add("components[1].requirements.cpu", 9, "must be positive")

	for name, row := range map[string]struct {
		err    error
		status int
		header [2]string
		fields int
		detail string
	}{
		"all faults are listed at once":                {faults.Err("the descriptor is invalid"), 422, [2]string{}, 2, "the descriptor is invalid"},
		"a wrapped kind is found at any depth":         {fmt.Errorf("read: %w", problem.New(problem.NotFound, "no job %s", "x")), 404, [2]string{}, 0, "no job x"},
		"an unknown error keeps its text to itself":    {errors.New("password=hunter2"), 500, [2]string{}, 0, "Something failed inside; the trace id finds it in the logs."},
		"unauthenticated says how to authenticate":     {problem.New(problem.Unauthenticated, "no token"), 401, [2]string{"WWW-Authenticate", `Bearer realm="littoral"`}, 0, "no token"},
		"unavailable says when to come back":           {problem.New(problem.Unavailable, "store away"), 503, [2]string{"Retry-After", "2"}, 0, "store away"},
		"the cause of a known kind stays out of sight": {problem.Wrap(problem.Conflict, errors.New("sql"), "busy"), 409, [2]string{}, 0, "busy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			problem.Write(w, row.err, "trace-1")
			require.Equal(t, row.status, w.Code)
			require.Equal(t, problem.ContentType, w.Header().Get("Content-Type"))
			if row.header[0] != "" {
				require.Equal(t, row.header[1], w.Header().Get(row.header[0]))
			}
			var d problem.Document
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &d))
			require.Equal(t, row.detail, d.Detail)
			require.Len(t, d.Errors, row.fields)
			require.Equal(t, "trace-1", d.TraceID)
		})
	}
}

func TestBrief(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		text string
		most int
		want string
	}{
		"nothing":                            {"", 3, ""},
		"what is short enough stays":         {"abc", 3, "abc"},
		"what is left out is shown":          {"abcd", 3, "abc..."},
		"nothing is allowed":                 {"abc", 0, "..."},
		"no letter is cut in two":            {"aü€😀", 9, "aü€..."},
		"nor is one of two bytes":            {"aü€😀", 2, "a..."},
		"a letter may end where it is cut":   {"aü€😀", 3, "aü..."},
		"what is no text is replaced":        {"a\xffb", 3, "a?b"},
		"also where the rest is left out":    {"a\xffbc", 3, "a?b..."},
		"half a letter at the end":           {"abc\xe2\x82", 5, "abc?"},
		"nothing but the ends of letters":    {strings.Repeat("\x80", 9), 3, "..."},
		"a zero is text, for whom it may be": {"a\x00b", 3, "a\x00b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, row.want, problem.Brief(row.text, row.most))
			require.Equal(t, row.want, problem.Brief([]byte(row.text), row.most), "of bytes")
		})
	}
}

func TestFaultsAreBounded(t *testing.T) {
	t.Parallel()
	var faults problem.Faults
	require.NoError(t, faults.Err("x"))
	for range 10_000 {
		faults.Add("a", 0, "b")
	}
	var e *problem.Error
	require.ErrorAs(t, faults.Err("bad"), &e)
	require.Len(t, e.Fields, 100)
	require.Contains(t, e.Detail, "9900 further")
}
