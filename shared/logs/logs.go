// Package logs stores what containers write and reads it again, by application.
//
// The one interface has three implementations: VictoriaLogs (logs/victorialogs), Loki (logs/loki), and for a laptop a folder
// (logs/files); logs/open chooses by settings. One test suite (logs/logstest) checks that all behave the same.
package logs

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/problem"
)

// Entry is one line that a container wrote. It is comparable.
type Entry struct {
	At          time.Time `json:"at"`
	Application string    `json:"application"` // its id
	Component   string    `json:"component,omitempty"`
	Cluster     string    `json:"cluster,omitempty"`
	Node        string    `json:"node,omitempty"`
	Pod         string    `json:"pod,omitempty"`
	Container   string    `json:"container,omitempty"`
	Stream      string    `json:"stream,omitempty"` // stdout or stderr
	Line        string    `json:"line"`
}

// The fields of an entry in a store, and the labels of its stream. The collector sets the same.
const (
	FieldApplication = label.AppInstance
	FieldComponent   = label.AppComponent
	FieldCluster     = "k8s_cluster_name"
	FieldNode        = "k8s_node_name"
	FieldPod         = "k8s_pod_name"
	FieldContainer   = "k8s_container_name"
	FieldStream      = "log_iostream"
)

// Fields returns the fields of the entry that are not empty.
func (e Entry) Fields() map[string]string {
	fields := map[string]string{}
	for name, value := range map[string]string{
		FieldApplication: e.Application, FieldComponent: e.Component, FieldCluster: e.Cluster, FieldNode: e.Node,
		FieldPod: e.Pod, FieldContainer: e.Container, FieldStream: e.Stream,
	} {
		if value != "" {
			fields[name] = value
		}
	}
	return fields
}

// Of returns the entry with these fields.
func Of(at time.Time, line string, fields map[string]string) Entry {
	return Entry{
		At: at.UTC(), Line: line, Application: fields[FieldApplication], Component: fields[FieldComponent],
		Cluster: fields[FieldCluster], Node: fields[FieldNode], Pod: fields[FieldPod], Container: fields[FieldContainer],
		Stream: fields[FieldStream],
	}
}

// Query selects lines of one application.
type Query struct {
	Application string // must be given
	Component   string // "" = all
	Text        string // what a line contains; "" = anything
	From        time.Time
	To          time.Time // exclusive; zero = whatever there is
	Limit       int       // 1 to MaxLines
	Newest      bool      // the last Limit lines instead of the first
}

// Limits.
const (
	MaxLines = 5000     // of one answer
	maxLine  = 32 << 10 // bytes; what is longer is cut
)

// Store stores lines. It is safe for concurrent use.
type Store interface {
	// Write stores entries, in any order and however late. They can be read soon afterwards, not at once.
	Write(ctx context.Context, entries []Entry) error
	// Read returns the entries that the query selects, oldest first. The error is Unavailable.
	Read(ctx context.Context, q Query) ([]Entry, error)
}

// Check refuses a query that a store cannot answer. The error is Invalid.
func (q Query) Check() error {
	if q.Application == "" || q.Limit < 1 || q.Limit > MaxLines || q.From.IsZero() {
		return problem.New(problem.Invalid, "a query for logs names an application, a time and 1 to %d lines", MaxLines)
	}
	return nil
}

// Selects reports whether the query selects the entry, whatever its limit.
func (q Query) Selects(e Entry) bool {
	return e.Application == q.Application && (q.Component == "" || e.Component == q.Component) &&
		!e.At.Before(q.From) && (q.To.IsZero() || e.At.Before(q.To)) && strings.Contains(e.Line, q.Text)
}

// Limited sorts entries and leaves those within the limit.
func (q Query) Limited(entries []Entry) []Entry {
	Sort(entries)
	if extra := len(entries) - q.Limit; extra > 0 {
		if q.Newest {
			return entries[extra:]
		}
		return entries[:q.Limit]
	}
	return entries
}

// Sort puts entries in the order of their time, and the lines of each container of one instant together.
func Sort(entries []Entry) {
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Pod, b.Pod), strings.Compare(a.Container, b.Container))
	})
}

// Clean returns the entry as every store can keep it: valid UTF-8 without a line break at its end, and not too long.
func Clean(e Entry) Entry {
	e.At = e.At.UTC().Round(0) // without the monotonic clock
	e.Line = strings.ToValidUTF8(strings.TrimRight(e.Line, "\r\n"), "\uFFFD")
	if len(e.Line) > maxLine {
		cut := maxLine
		for !utf8.RuneStart(e.Line[cut]) {
			cut--
		}
		e.Line = e.Line[:cut] + "…"
	}
	return e
}
