package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/logs"
	"github.com/littoral-project/littoral/shared/orchestrator"
)

// collector brings what containers of applications write to the store of logs. A line arrives at least once: how far it has come
// is written down after the store has taken the lines.
type collector struct {
	client        *client.Client
	store         logs.Store
	cluster, node string
	file          string // where it is written down; "" = a new collector begins with what is written from now on

	taken map[string]mark // by container
	begun mark
}

// mark is how far the store has taken the lines of a container: those before a time, and the first of that time. Podman tells
// times in whole seconds, so that more of one time may come later.
type mark struct {
	At    time.Time `json:"at"`
	Lines int       `json:"lines"`
}

// UnmarshalJSON reads a time alone, too, as former versions have noted it.
func (m *mark) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		m.Lines = 1
		return m.At.UnmarshalJSON(text)
	}
	type plain mark
	return json.Unmarshal(text, (*plain)(m))
}

// newCollector continues where the one before has come to.
func newCollector(c *client.Client, store logs.Store, cluster, node, file string) (*collector, error) {
	l := &collector{
		client: c, store: store, cluster: cluster, node: node, file: file, taken: map[string]mark{},
		begun: mark{At: time.Now().Truncate(time.Second)},
	}
	if file == "" {
		return l, nil
	}
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return l, l.note() // so that an unwritable place is told at once
	case err != nil:
		return nil, fmt.Errorf("logs-state: %w", err)
	}
	if err := json.Unmarshal(text, &l.taken); err != nil {
		return nil, fmt.Errorf("logs-state: %s: %w", file, err)
	}
	l.begun = mark{} // containers that it does not name have begun since
	return l, nil
}

// note writes down how far it has come; a crash leaves the former file.
func (l *collector) note() error {
	if l.file == "" {
		return nil
	}
	text, err := json.Marshal(l.taken)
	if err != nil {
		return err
	}
	next := l.file + ".next"
	if err := errors.Join(os.MkdirAll(filepath.Dir(l.file), 0o700), os.WriteFile(next, text, 0o600)); err != nil {
		return fmt.Errorf("logs-state: %w", err)
	}
	return os.Rename(next, l.file)
}

// collect takes what was written since the last time.
func (l *collector) collect(ctx context.Context) error {
	listed, err := l.client.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.
		Add("label", orchestrator.LabelManager+"="+orchestrator.Manager).Add("label", label.MarkInstance)})
	if err != nil {
		return err
	}
	var faults []error
	there := map[string]bool{}
	for i := range listed.Items {
		there[listed.Items[i].ID] = true
		faults = append(faults, l.from(ctx, &listed.Items[i]))
	}
	for id := range l.taken {
		if !there[id] {
			delete(l.taken, id)
		}
	}
	return errors.Join(append(faults, l.note())...)
}

// from takes the lines of one container, some at a time.
func (l *collector) from(ctx context.Context, c *container.Summary) error {
	since, known := l.taken[c.ID]
	if !known {
		since = l.begun
	}
	inspected, err := l.client.ContainerInspect(ctx, c.ID, client.ContainerInspectOptions{})
	if errdefs.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	options := client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Timestamps: true}
	if !since.At.IsZero() {
		options.Since = since.At.UTC().Format(time.RFC3339Nano)
	}
	stream, err := l.client.ContainerLogs(ctx, c.ID, options)
	if errdefs.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	out := &writer{ctx: ctx, l: l, since: since, container: c}
	if inspected.Container.Config != nil && inspected.Container.Config.Tty {
		_, err = io.Copy(&lines{to: out, stream: "stdout"}, stream)
	} else {
		stdout, stderr := &lines{to: out, stream: "stdout"}, &lines{to: out, stream: "stderr"}
		_, err = stdcopy.StdCopy(stdout, stderr, stream)
		err = errors.Join(err, stdout.end(), stderr.end())
	}
	if err != nil {
		return err
	}
	return out.flush()
}

// batch is how many lines are handed to the store at once.
const batch = 500

// writer hands lines of a container to the store.
type writer struct {
	ctx       context.Context //nolint:containedctx // it lives as long as a call
	l         *collector
	since     mark // less the lines of its time that were passed over
	container *container.Summary
	entries   []logs.Entry
}

// add takes a line with its time before it. What was taken of the last time comes once more, and first.
func (w *writer) add(stream, line string) error {
	stamp, text, _ := strings.Cut(line, " ")
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil || at.Before(w.since.At) {
		return nil //nolint:nilerr // the rest of a line that the engine has cut has no time
	}
	if at.Equal(w.since.At) && w.since.Lines > 0 {
		w.since.Lines--
		return nil
	}
	name := ""
	if len(w.container.Names) > 0 {
		name = strings.TrimPrefix(w.container.Names[0], "/")
	}
	labels := w.container.Labels
	w.entries = append(w.entries, logs.Clean(logs.Entry{
		At: at, Application: labels[label.MarkInstance], Component: labels[label.MarkComponent], Cluster: w.l.cluster, Node: w.l.node,
		Pod: name, Container: labels["com.docker.compose.service"], Stream: stream, Line: text,
	}))
	if n := len(w.entries); n > batch && w.entries[n-1].At.After(w.entries[n-2].At) { // lines of one instant stay together
		last := w.entries[n-1]
		w.entries = w.entries[:n-1]
		if err := w.flush(); err != nil {
			return err
		}
		w.entries = append(w.entries, last)
	}
	return nil
}

// flush hands over what there is.
func (w *writer) flush() error {
	if len(w.entries) == 0 {
		return nil
	}
	if err := w.l.store.Write(w.ctx, w.entries); err != nil {
		return fmt.Errorf("store of logs: %w", err)
	}
	for _, e := range w.entries {
		switch m := w.l.taken[w.container.ID]; {
		case e.At.After(m.At):
			w.l.taken[w.container.ID] = mark{e.At, 1}
		case e.At.Equal(m.At):
			w.l.taken[w.container.ID] = mark{m.At, m.Lines + 1}
		}
	}
	w.entries = nil
	return nil
}

// lines cuts a stream into lines.
type lines struct {
	to     *writer
	stream string
	rest   []byte
}

// longest is how long a line may become before it is handed over in parts: the store cuts it anyway.
const longest = 1 << 20

func (c *lines) Write(p []byte) (int, error) {
	c.rest = append(c.rest, p...)
	scanned := bufio.NewReader(bytes.NewReader(c.rest))
	used := 0
	for {
		line, err := scanned.ReadString('\n')
		if err != nil && len(line) < longest {
			break
		}
		used += len(line)
		if err := c.to.add(c.stream, line); err != nil {
			return 0, err
		}
		if err != nil {
			break
		}
	}
	c.rest = append(c.rest[:0], c.rest[used:]...)
	return len(p), nil
}

func (c *lines) end() error {
	if len(c.rest) == 0 {
		return nil
	}
	return c.to.add(c.stream, string(c.rest))
}
