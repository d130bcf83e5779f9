// Package logstest is the test suite that every store of logs must pass.
package logstest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/logs"
)

// Run checks a store. open returns one that may hold what other tests wrote; applications have ids of their own.
func Run(t *testing.T, open func(t *testing.T) logs.Store) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, logs.Store){
		"order":    order,
		"limits":   limits,
		"chosen":   chosen,
		"hostile":  hostile,
		"others":   others,
		"followed": followed,
		"nothing":  nothing,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// start is a little while ago: stores refuse what is too old.
func start() time.Time { return time.Now().Add(-10 * time.Minute).UTC().Truncate(time.Second) }

// entry is line n of an application.
func entry(app string, n int) logs.Entry {
	return logs.Entry{
		At: start().Add(time.Duration(n)*time.Second + 123456789), Application: app, Component: "web", Cluster: "cloud",
		Node: "cloud-1", Pod: "web-1", Container: "web", Stream: "stdout", Line: fmt.Sprintf("line %d", n),
	}
}

// written stores entries and waits until they can be read.
func written(t *testing.T, s logs.Store, entries ...logs.Entry) {
	t.Helper()
	require.NoError(t, s.Write(t.Context(), entries))
	counts := map[string]int{}
	for _, e := range entries {
		counts[e.Application]++
	}
	for app, count := range counts {
		require.Eventually(t, func() bool {
			found, err := s.Read(t.Context(), all(app))
			return err == nil && len(found) >= count
		}, 20*time.Second, 50*time.Millisecond, "lines of %s appear", app)
	}
}

func all(app string) logs.Query {
	return logs.Query{Application: app, From: start().Add(-time.Hour), Limit: logs.MaxLines}
}

func read(t *testing.T, s logs.Store, q logs.Query) []logs.Entry {
	t.Helper()
	found, err := s.Read(t.Context(), q)
	require.NoError(t, err)
	return found
}

func texts(entries []logs.Entry) []string {
	list := []string{}
	for _, e := range entries {
		list = append(list, e.Line)
	}
	return list
}

// order: lines come back as they were written, in the order of their time.
func order(t *testing.T, s logs.Store) {
	app := uuid.NewString()
	var lines []logs.Entry
	for n := range 50 {
		lines = append(lines, entry(app, n))
	}
	mixed := append([]logs.Entry(nil), lines...)
	rand.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	written(t, s, mixed[:25]...)
	written(t, s, mixed[25:]...)
	require.Eventually(t, func() bool { return len(read(t, s, all(app))) == len(lines) }, 20*time.Second, 50*time.Millisecond)
	got := read(t, s, all(app))
	for i := range lines {
		require.Equal(t, lines[i], got[i], "line %d, to the nanosecond and with all fields", i)
	}
}

// limits: the first or the last lines, within a time whose end is exclusive.
func limits(t *testing.T, s logs.Store) {
	app := uuid.NewString()
	var lines []logs.Entry
	for n := range 20 {
		lines = append(lines, entry(app, n))
	}
	written(t, s, lines...)
	q := all(app)
	q.Limit = 3
	require.Equal(t, []string{"line 0", "line 1", "line 2"}, texts(read(t, s, q)))
	q.Newest = true
	require.Equal(t, []string{"line 17", "line 18", "line 19"}, texts(read(t, s, q)))
	q.From, q.To, q.Limit = lines[4].At, lines[7].At, 100
	require.Equal(t, []string{"line 4", "line 5", "line 6"}, texts(read(t, s, q)))
	q.To = time.Time{}
	require.Len(t, read(t, s, q), 16)
	for _, bad := range []logs.Query{{}, {Application: app, From: q.From}, {Application: app, From: q.From, Limit: logs.MaxLines + 1}, {From: q.From, Limit: 1}} {
		_, err := s.Read(t.Context(), bad)
		require.Error(t, err)
	}
}

// chosen: by component and by text, literally.
func chosen(t *testing.T, s logs.Store) {
	app := uuid.NewString()
	a, b, c := entry(app, 1), entry(app, 2), entry(app, 3)
	b.Component, b.Pod, c.Line = "db", "db-1", "GET /a.b*c? [x] 100%"
	written(t, s, a, b, c)
	q := all(app)
	q.Component = "db"
	require.Equal(t, []logs.Entry{b}, read(t, s, q))
	q.Component, q.Text = "", "/a.b*c? [x]"
	require.Equal(t, []logs.Entry{c}, read(t, s, q))
	q.Text = "/a.bbc"
	require.Empty(t, read(t, s, q))
}

// hostile: what is in a line or a name stays there.
func hostile(t *testing.T, s logs.Store) {
	app := uuid.NewString()
	var lines []logs.Entry
	for n, text := range []string{
		`"} or {icos_app_instance=~".*`, `quote " back \ slash`, "tab\tand \x1b[31mred", "two\nlines", "ümlaut 漢字 🙂", `{"level":"info","_time":"1999"}`,
		"`" + `'; drop table x; --`,
	} {
		e := entry(app, n)
		e.Line = text
		lines = append(lines, e)
	}
	long, broken := entry(app, 20), entry(app, 21)
	long.Line, broken.Line = strings.Repeat("ä", 1<<20), "a\xffb\r\n"
	written(t, s, append(lines, long, broken)...)
	got := read(t, s, all(app))
	require.Equal(t, lines, got[:len(lines)])
	require.Equal(t, logs.Clean(long), got[len(lines)])
	require.Less(t, len(got[len(lines)].Line), 1<<16)
	require.Equal(t, "a\uFFFDb", got[len(lines)+1].Line)
	for _, e := range lines {
		q := all(app)
		q.Text = e.Line
		require.Equal(t, []logs.Entry{e}, read(t, s, q), "found by %q", e.Line)
	}
	for _, evil := range []string{`x"} or {icos_app_instance=~".+`, "*", "", app + `"`, `\`} {
		q := all(app)
		q.Component = evil
		if evil != "" {
			require.Empty(t, read(t, s, q), "component %q", evil)
			q.Component = ""
		}
		q.Application = `x` + evil
		require.Empty(t, read(t, s, q), "application %q", evil)
	}
}

// others: an application gets its own lines and nobody else's, whatever there is.
func others(t *testing.T, s logs.Store) {
	var entries []logs.Entry
	var apps []string
	count := map[string]int{}
	for range 12 {
		apps = append(apps, uuid.NewString())
	}
	for n := range 300 {
		app := apps[rand.IntN(len(apps))]
		entries = append(entries, entry(app, n))
		count[app]++
	}
	written(t, s, entries...)
	for _, app := range apps {
		found := read(t, s, all(app))
		require.Len(t, found, count[app])
		for _, e := range found {
			require.Equal(t, app, e.Application)
		}
	}
}

// followed: whoever follows gets each line once, in batches that are in order, late ones too.
func followed(t *testing.T, s logs.Store) {
	app := uuid.NewString()
	now := time.Now().UTC()
	line := func(text string, at time.Time) logs.Entry {
		e := entry(app, 0)
		e.Line, e.At = text, at
		return e
	}
	first := line("first", now.Add(-time.Second))
	written(t, s, first)
	f := logs.Follow(s, logs.Query{Application: app, From: now.Add(-time.Minute)}, time.Now, []logs.Entry{first})
	var got []string
	more := func(want int) {
		require.Eventually(t, func() bool {
			fresh, err := f.Next(t.Context())
			require.NoError(t, err)
			got = append(got, texts(fresh)...)
			return len(got) >= want
		}, 20*time.Second, 50*time.Millisecond)
	}
	written(t, s, line("second", now))
	more(1)
	written(t, s, line("late", now.Add(-5*time.Second)), line("third", now.Add(time.Millisecond)))
	more(3)
	fresh, err := f.Next(t.Context())
	require.NoError(t, err)
	require.Empty(t, fresh)
	require.ElementsMatch(t, []string{"second", "late", "third"}, got)
}

// nothing: an application that wrote nothing has no lines, and nothing can be written.
func nothing(t *testing.T, s logs.Store) {
	require.NoError(t, s.Write(t.Context(), nil))
	found := read(t, s, all(uuid.NewString()))
	require.NotNil(t, found)
	require.Empty(t, found)
}
