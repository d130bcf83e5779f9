package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// listing shows a list of things and, on request, how it changes.
type listing[T any] struct {
	watch  bool
	what   string // plural, for "No applications."
	kind   string // before "/" and the key with -o name
	fetch  func(context.Context) ([]T, error)
	key    func(T) string
	named  func(T) string // what -o name prints after the kind; nil = the key
	header []string
	row    func(T) []string
	steady []int // columns whose change prints the row again; nil = all
	// again reads an item that has left the list, which may only be hidden by the filter now; nil = it is gone
	again func(context.Context, T) (*T, error)
	gone  func(*T)
}

// run prints the list. With watch it prints each item again whenever it has changed, until interrupted.
func (l *listing[T]) run(s *session) error {
	list, err := l.fetch(s.ctx)
	if err != nil {
		return err
	}
	if !l.watch {
		return l.printAll(s, list)
	}
	t := l.table(s)
	if err := l.printEach(s, t, list); err != nil {
		return err
	}
	known := l.index(list)
	for s.wait(s.ctx) == nil {
		now, changed, err := l.poll(s.ctx, known)
		switch {
		case s.ctx.Err() != nil:
			return nil
		case s.bears(err):
			continue
		case err != nil:
			return err
		}
		if err := l.printEach(s, t, changed); err != nil {
			return err
		}
		known = now
	}
	return nil
}

// bears reports whether a watch continues although a request failed. It prints the failure once, not for every poll.
func (s *session) bears(err error) bool {
	text := ""
	if passing(err) {
		text = printable(err.Error())
	}
	if text != "" && text != s.away {
		fmt.Fprintf(s.err, "littoral: %s; trying again\n", text)
	}
	s.away = text
	return text != ""
}

func (l *listing[T]) printAll(s *session, list []T) error {
	if done, err := s.said(list, l.names(list)...); done {
		return err
	}
	if len(list) == 0 {
		_, err := fmt.Fprintf(s.err, "No %s.\n", l.what)
		return err
	}
	return l.printRows(l.table(s), list)
}

func (l *listing[T]) table(s *session) *table { return s.newTable(l.header...) }

func (l *listing[T]) names(list []T) []string {
	named := l.named
	if named == nil {
		named = l.key
	}
	return namesOf(l.kind, list, func(v *T) string { return named(*v) })
}

func (l *listing[T]) printEach(s *session, t *table, list []T) error {
	if s.format.structured() {
		return printEach(s, list)
	}
	if done, err := s.said(list, l.names(list)...); done {
		return err
	}
	return l.printRows(t, list)
}

// printRows writes the rows in one go, so that they all have the widths of the widest.
func (l *listing[T]) printRows(t *table, list []T) error {
	if len(list) == 0 {
		return nil
	}
	rows := make([][]string, len(list))
	for i, v := range list {
		rows[i] = l.row(v)
	}
	return t.write(rows...)
}

// seen is an item with its mark.
type seen[T any] struct {
	value T
	mark  string
}

func (l *listing[T]) index(list []T) map[string]seen[T] {
	m := make(map[string]seen[T], len(list))
	for _, v := range list {
		m[l.key(v)] = seen[T]{v, l.mark(v)}
	}
	return m
}

// mark is the part of a row that is compared. Ages and usages are left out, since they change all the time.
func (l *listing[T]) mark(v T) string {
	row := l.row(v)
	kept := row
	if l.steady != nil {
		kept = nil
		for _, i := range l.steady {
			kept = append(kept, row[i])
		}
	}
	text, _ := json.Marshal(kept) // strings always encode
	return string(text)
}

// poll returns the present list, and the items that have changed since before, those that left the list last.
func (l *listing[T]) poll(ctx context.Context, before map[string]seen[T]) (now map[string]seen[T], changed []T, err error) {
	list, err := l.fetch(ctx)
	if err != nil {
		return nil, nil, err
	}
	now = l.index(list)
	for _, v := range list {
		if old, known := before[l.key(v)]; !known || old.mark != now[l.key(v)].mark {
			changed = append(changed, v)
		}
	}
	var left []string
	for key := range before {
		if _, still := now[key]; !still {
			left = append(left, key)
		}
	}
	slices.Sort(left)
	for _, key := range left {
		v, err := l.leave(ctx, before[key].value)
		if err != nil {
			return nil, nil, err
		}
		changed = append(changed, v)
	}
	return now, changed, nil
}

// leave returns what became of an item that left the list: it may still exist but no longer match.
func (l *listing[T]) leave(ctx context.Context, v T) (T, error) {
	if l.again != nil {
		found, err := l.again(ctx, v)
		switch {
		case err == nil:
			return *found, nil
		case !missing(err):
			return v, err
		}
	}
	l.gone(&v)
	return v, nil
}
