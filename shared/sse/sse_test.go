package sse_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/sse"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	sent := []sse.Event{
		{ID: "1", Name: "job.placed", Data: `{"a":1}`},
		{ID: "1", Data: "two\nlines"},
		{ID: "3", Name: "empty"},
	}
	w := httptest.NewRecorder()
	s, err := sse.Start(w, 2*time.Second)
	require.NoError(t, err)
	for _, e := range sent {
		require.NoError(t, s.Send(e))
		require.NoError(t, s.Alive())
	}
	require.True(t, w.Flushed)
	require.Equal(t, sse.Type, w.Header().Get("Content-Type"))
	require.Contains(t, w.Body.String(), "retry: 2000\n")
	var read []sse.Event
	require.NoError(t, sse.Read(w.Body, func(e sse.Event) error { read = append(read, e); return nil }))
	require.Equal(t, sent, read)
}

func TestAnIdOrNameCannotAddFields(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	s, err := sse.Start(w, time.Second)
	require.NoError(t, err)
	require.NoError(t, s.Send(sse.Event{ID: "1\ndata: x", Name: "a\r\nid: 9", Data: "b\rid: 8"}))
	var read []sse.Event
	require.NoError(t, sse.Read(w.Body, func(e sse.Event) error { read = append(read, e); return nil }))
	require.Equal(t, []sse.Event{{ID: "1data: x", Name: "aid: 9", Data: "b\nid: 8"}}, read)
}

func TestReadEndsWithTheErrorOfItsCaller(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	err := sse.Read(strings.NewReader("data: 1\n\ndata: 2\n\n"), func(sse.Event) error { return enough })
	require.ErrorIs(t, err, enough)
	require.NoError(t, sse.Read(strings.NewReader("data: cut off"), func(sse.Event) error { return enough }))
}

func TestLastID(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		header, query string
		id            int64
		ok            bool
		kind          problem.Kind
	}{
		"none":                        {},
		"of the query":                {query: "?after=7", id: 7, ok: true},
		"the header counts more":      {header: "9", query: "?after=7", id: 9, ok: true},
		"no number":                   {header: "x", kind: problem.Malformed},
		"negative":                    {query: "?after=-1", kind: problem.Malformed},
		"more than there are numbers": {query: "?after=99999999999999999999", kind: problem.Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodGet, "/"+row.query, nil)
			if row.header != "" {
				r.Header.Set("Last-Event-ID", row.header)
			}
			id, err := sse.LastID(r, "after")
			if row.kind != "" {
				require.Equal(t, row.kind, problem.KindOf(err))
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.ok, id != nil)
			if row.ok {
				require.Equal(t, row.id, *id)
			}
		})
	}
}
