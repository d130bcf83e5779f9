package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	mostEvents = 8 << 20   // bytes that one look reads of the file; the rest is for the next
	mostLine   = 256 << 10 // of one event
	mostCounts = 2_000     // series; more are counted together
	forgetting = 2 * time.Hour
)

// tetragon counts the events that Tetragon exports to a file, a JSON object on each line. Those from before the leaf began are not
// counted; after a rotation, what is left of the former file is. nil = there is none.
type tetragon struct {
	path   string
	file   *os.File
	rest   []byte // a line without its end, yet
	skip   bool   // up to the end of a line that is too long
	counts map[string]*eventCount
	broken float64 // lines that are no events
}

type eventCount struct {
	of    labels
	pod   podName
	id    string // beginning of the container's id, as Tetragon cuts it
	value float64
	last  time.Time
}

type podName struct{ namespace, name string }

func newTetragon(path string) *tetragon {
	if path == "" {
		return nil
	}
	t := &tetragon{path: path, counts: map[string]*eventCount{}}
	if file, err := os.Open(path); err == nil {
		if _, err := file.Seek(0, io.SeekEnd); err == nil {
			t.file = file
		}
	}
	return t
}

// event is what is read of one, after Tetragon's events.proto. Exactly one kind is given.
type event struct {
	NodeName string `json:"node_name"`
	Kinds    map[string]*occurrence
}

type occurrence struct {
	Process struct {
		Binary, Docker string
		Pod            *struct {
			Namespace, Name string
			Container       struct{ Name string }
			Labels          labels `json:"pod_labels"`
		}
	}
	Action string
	Tags   []string
}

func (e *event) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	e.Kinds = map[string]*occurrence{}
	for name, text := range fields {
		switch kind, isProcess := strings.CutPrefix(name, "process_"); {
		case name == "node_name":
			if err := json.Unmarshal(text, &e.NodeName); err != nil {
				return err
			}
		case isProcess:
			o := &occurrence{}
			if err := json.Unmarshal(text, o); err != nil {
				return err
			}
			e.Kinds[kind] = o
		}
	}
	return nil
}

// uncounted are kinds that say nothing beside what another event of the same process says.
var uncounted = []string{"exit", "loader"}

// severity is high for what Tetragon acted on, medium for what a policy matched, low for the start of a process; unless the policy
// says otherwise by a tag, such as severity.critical.
func (o *occurrence) severity(kind string) string {
	for _, tag := range o.Tags {
		if s, ok := strings.CutPrefix(tag, "severity."); ok && s != "" {
			return s
		}
	}
	switch strings.TrimPrefix(o.Action, "KPROBE_ACTION_") {
	case "SIGKILL", "SIGNAL", "OVERRIDE", "NOTIFYENFORCER":
		return "high"
	}
	if kind == "exec" {
		return "low"
	}
	return "medium"
}

// read counts what was written since the last time.
func (t *tetragon) read(now time.Time) error {
	if t.file == nil {
		file, err := os.Open(t.path)
		if errors.Is(err, os.ErrNotExist) {
			return nil // Tetragon has not begun
		}
		if err != nil {
			return err
		}
		t.file = file
	}
	if err := t.drain(now); err != nil {
		return err
	}
	is, err := t.file.Stat()
	if err != nil {
		return err
	}
	at, err := t.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	named, err := os.Stat(t.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil // between the two steps of a rotation
	case err != nil:
		return err
	case os.SameFile(is, named) && is.Size() >= at:
		return nil
	case os.SameFile(is, named): // it was cut
		t.rest, t.skip = nil, false
		if _, err := t.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return t.drain(now)
	case at < is.Size():
		return nil // what is left of the former file comes first
	}
	_ = t.file.Close()
	t.rest, t.skip, t.file = nil, false, nil
	if t.file, err = os.Open(t.path); err != nil {
		t.file = nil
		return err
	}
	return t.drain(now)
}

func (t *tetragon) drain(now time.Time) error {
	data, err := io.ReadAll(io.LimitReader(t.file, mostEvents))
	if err != nil {
		return err
	}
	data = append(t.rest, data...)
	for {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			break
		}
		data = rest
		if t.skip {
			t.skip = false
			continue
		}
		if len(bytes.TrimSpace(line)) > 0 {
			t.count(line, now)
		}
	}
	if len(data) > mostLine {
		t.skip, data = true, nil
		t.broken++
	}
	t.rest = slices.Clone(data)
	return nil
}

func (t *tetragon) count(line []byte, now time.Time) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		t.broken++
		return
	}
	for kind, o := range e.Kinds {
		if slices.Contains(uncounted, kind) {
			continue
		}
		c := &eventCount{of: labels{
			"event_name": kind, "severity": o.severity(kind), "command": filepath.Base(o.Process.Binary),
		}, id: o.Process.Docker}
		if e.NodeName != "" {
			c.of["k8s_node_name"] = e.NodeName
		}
		if p := o.Process.Pod; p != nil {
			c.pod = podName{p.Namespace, p.Name}
			workload(c.of, p.Labels)
			maps.Copy(c.of, labels{"k8s_namespace_name": p.Namespace, "k8s_pod_name": p.Name, "k8s_container_name": p.Container.Name})
		}
		text, _ := json.Marshal([]any{c.of, c.id}) // keys in order
		key := string(text)
		known := t.counts[key]
		if known == nil {
			if len(t.counts) >= mostCounts {
				key, c = "", &eventCount{of: labels{"event_name": "other", "severity": "unknown", "command": ""}}
			}
			if known = t.counts[key]; known == nil {
				known = c
				t.counts[key] = c
			}
		}
		known.value++
		known.last = now
	}
}

// tell adds the counts, each with what telemetry calls the pod or the container.
func (t *tetragon) tell(k *look, pods *cluster, engine *engineState, now time.Time) {
	if t == nil {
		return
	}
	if err := t.read(now); err != nil {
		k.failed("tetragon", err)
	}
	maps.DeleteFunc(t.counts, func(_ string, c *eventCount) bool { return now.Sub(c.last) > forgetting })
	byName := map[podName]*pod{}
	if pods != nil {
		for i := range pods.pods {
			m := pods.pods[i].Metadata
			byName[podName{m.Namespace, m.Name}] = &pods.pods[i]
		}
	}
	for _, c := range t.counts {
		of := maps.Clone(c.of)
		if p := byName[c.pod]; p != nil {
			of["k8s_pod_uid"] = p.Metadata.UID
			workload(of, p.Metadata.Labels)
			workload(of, p.Metadata.Annotations)
		} else if engine != nil && c.id != "" {
			for i := range engine.Containers {
				if one := &engine.Containers[i]; strings.HasPrefix(one.ID, c.id) {
					of["container_id"] = one.ID
					workload(of, one.Labels)
				}
			}
		}
		k.count("tetragon_events_total", "Events of Tetragon", c.value, of)
	}
	k.count("tlum_tetragon_broken_total", "Lines of Tetragon's file that are no events", t.broken, nil)
}
