package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/logs"
	"github.com/littoral-project/littoral/shared/logs/files"
	"github.com/littoral-project/littoral/test/engine"
)

// store refuses what it is given while it is away.
type store struct {
	logs.Store
	away bool
}

func (s *store) Write(ctx context.Context, entries []logs.Entry) error {
	if s.away {
		return errors.New("away")
	}
	return s.Store.Write(ctx, entries)
}

// read lists the lines of an application.
func (s *store) read(t *testing.T, application string) (all []logs.Entry) {
	t.Helper()
	all, err := s.Read(t.Context(), logs.Query{Application: application, From: time.Now().Add(-24 * time.Hour), Limit: logs.MaxLines})
	require.NoError(t, err)
	return all
}

// TestWhatContainersWrite reaches the store that the functions read, each line once, whatever was away meanwhile.
func TestWhatContainersWrite(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.submit("web:1")
	s.work(s.agent)
	kept := &store{Store: files.New(files.Options{Dir: t.TempDir()})}
	state := filepath.Join(t.TempDir(), "edge", "logs.json")
	open := func() *collector {
		c, err := newCollector(s.client(), kept, "harbour", "harbour-host", state)
		require.NoError(t, err)
		return c
	}
	at := time.Now().Add(time.Second).UTC()
	say := func(container int, after time.Duration, stderr bool, text string) {
		name := s.engine.Containers()[container].Name
		s.engine.Change(name, func(c *engine.Container) bool {
			c.Wrote = append(c.Wrote, engine.Line{At: at.Add(after), Stderr: stderr, Text: text})
			return true
		})
	}
	texts := func() (all []string) {
		for _, e := range kept.read(t, id) {
			all = append(all, e.Stream+" "+e.Line)
		}
		return all
	}

	c := open()
	say(0, 1, false, "one")
	say(1, 2, true, "two")
	require.NoError(t, c.collect(t.Context()))
	require.Equal(t, []string{"stdout one", "stderr two"}, texts())
	first := kept.read(t, id)[0]
	require.Equal(t, logs.Entry{
		At: at.Add(1), Application: id, Component: "web", Cluster: "harbour", Node: "harbour-host",
		Pod: s.engine.Containers()[0].Name, Container: "web", Stream: "stdout", Line: "one",
	}, first)

	kept.away = true
	say(0, 3, false, "three")
	require.ErrorContains(t, c.collect(t.Context()), "store of logs: away")
	kept.away = false
	c = open() // it was killed
	say(0, 4, false, "four")
	for range 3 {
		require.NoError(t, c.collect(t.Context()))
	}
	require.Equal(t, []string{"stdout one", "stderr two", "stdout three", "stdout four"}, texts())

	for i := range 3*batch + 7 {
		say(1, time.Duration(10+i/3), false, "many") // three in each instant
	}
	require.NoError(t, c.collect(t.Context()))
	require.Len(t, texts(), 4+3*batch+7)
	require.NoError(t, c.collect(t.Context()))
	require.Len(t, texts(), 4+3*batch+7)

	last := time.Duration(10 + (3*batch+6)/3)
	say(1, last, false, "late") // of an instant of which lines were taken, as where times are whole seconds
	require.NoError(t, c.collect(t.Context()))
	require.NoError(t, open().collect(t.Context()))
	require.Len(t, texts(), 4+3*batch+8)
	require.Contains(t, texts(), "stdout late")
}

// TestAFormerNoteIsRead: it had times alone.
func TestAFormerNoteIsRead(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "logs.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"a": "2026-11-26T10:00:00Z"}`), 0o600))
	c, err := newCollector(nil, nil, "harbour", "harbour-host", file)
	require.NoError(t, err)
	require.Equal(t, map[string]mark{"a": {time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC), 1}}, c.taken)
}

// client is a client of the site's engine.
func (s *site) client() *client.Client {
	s.t.Helper()
	c, err := client.New(client.WithHost(s.engine.Host))
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestWhatContainersWrite_real reads what real containers write, by an agent in a process of its own that is killed meanwhile.
func TestWhatContainersWrite_real(t *testing.T) {
	m := onReal(t)
	dir := t.TempDir()
	kept := &store{Store: files.New(files.Options{Dir: filepath.Join(dir, "logs")})}
	m.more = []string{
		"EDGE_LOGS_BACKEND=files", "EDGE_LOGS_DIR=" + filepath.Join(dir, "logs"), "EDGE_LOGS_EVERY=200ms", "EDGE_NODE=harbour-host",
		"EDGE_LOGS_STATE=" + filepath.Join(dir, "state", "logs.json"),
	}
	id := m.submit(m.images[0])
	m.start()
	m.run(m.images[0], 2, "begun")
	var all []logs.Entry
	require.Eventually(t, func() bool {
		all = kept.read(t, id)
		return len(all) == 2
	}, patience, 50*time.Millisecond, "each container writes a line when it begins")
	require.Equal(t, []string{"web", "harbour", "harbour-host", "stdout", "hello []"},
		[]string{all[0].Component, all[0].Cluster, all[0].Node, all[0].Stream, all[0].Line})
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "state", "logs.json"))
		taken := map[string]mark{}
		return err == nil && json.Unmarshal(text, &taken) == nil && len(taken) == 2
	}, patience, pause, "it has noted both: killed before, it would bring them once more")
	m.kill()
	m.start()
	last := slices.MaxFunc(all, func(a, b logs.Entry) int { return a.At.Compare(b.At) }).At
	require.Eventually(t, func() bool { return time.Since(last.Truncate(time.Second)) >= time.Second }, patience, pause,
		"Podman tells times in whole seconds, by which lines are told apart below")
	m.call(http.MethodPut, "/jobmanager/groups/"+id, replaced(m.images[1]), http.StatusOK)
	m.run(m.images[1], 2, "replaced")
	require.Eventually(t, func() bool { return len(kept.read(t, id)) >= 4 }, patience, 50*time.Millisecond)
	type line struct {
		pod string
		at  time.Time
	}
	lines := map[line]bool{}
	for _, e := range kept.read(t, id) {
		lines[line{e.Pod, e.At}] = true
	}
	require.Len(t, lines, len(kept.read(t, id)), "no line twice")
	require.True(t, slices.IsSortedFunc(kept.read(t, id), func(a, b logs.Entry) int { return a.At.Compare(b.At) }))
}
