package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/problem"
)

type replayCommand struct {
	Event string `arg:"" help:"Event: id, or a beginning of it that no other dead letter has (4 digits or more)."`
	outputFlag
}

// Run sends the event again to the consumers that did not accept it.
func (c *replayCommand) Run(s *session) error {
	id, err := s.deadEvent(c.Event)
	if err != nil {
		return err
	}
	letters, err := s.client.Replay(s.ctx, id)
	switch problem.KindOf(err) {
	case problem.NotFound, problem.Conflict:
		return advise(err, "List what can be replayed with: littoral events --dead")
	}
	if err != nil {
		return err
	}
	if done, err := s.said(letters, eventNames(letters)...); done {
		return err
	}
	consumers := make([]string, len(letters))
	for i := range letters {
		consumers[i] = letters[i].Consumer
	}
	s.text("event %s sent again to %s", id, strings.Join(consumers, ", "))
	if s.wide() {
		return s.letters(letters)
	}
	fmt.Fprintln(s.out, "See what becomes of it with: littoral events -w")
	return nil
}

const wholeID = 36 // characters

// deadEvent completes the end of an event's id, as lists show it, or its beginning.
func (s *session) deadEvent(given string) (string, error) {
	given = bare("event", given)
	if len(given) == wholeID {
		return given, nil
	}
	if len(given) < 4 {
		return "", usagef("%q is too short; give at least 4 digits of the event's id", given)
	}
	letters, err := s.client.DeadLetters(s.ctx)
	if err != nil {
		return "", err
	}
	found := map[string]bool{}
	for i := range letters {
		if id, part := letters[i].EventID, strings.ToLower(given); strings.HasPrefix(id, part) || strings.HasSuffix(id, part) {
			found[letters[i].EventID] = true
		}
	}
	for id := range found {
		if len(found) == 1 {
			return id, nil
		}
	}
	return "", advise(fmt.Errorf("%d dead letters have an event id that begins or ends with %s", len(found), printable(given)),
		"List them with: littoral events --dead -o wide")
}

// dead lists the dead letters: events that no function took in the end.
func (c *eventsCommand) dead(s *session) error {
	if c.Watch || c.App != "" {
		return usagef("--dead shows all dead letters as they are; it goes with neither --app nor --watch")
	}
	letters, err := s.client.DeadLetters(s.ctx)
	if err != nil {
		return err
	}
	if done, err := s.said(letters, eventNames(letters)...); done {
		return err
	}
	if len(letters) == 0 {
		_, err := fmt.Fprintln(s.err, "No dead letters: every event was taken.")
		return err
	}
	if err := s.letters(letters); err != nil {
		return err
	}
	fmt.Fprintln(s.err, "Once the cause is gone, send one again with: littoral replay EVENT")
	return nil
}

func eventNames(letters []api.DeadLetter) []string {
	return namesOf("event", letters, func(l *api.DeadLetter) string { return l.EventID })
}

func (s *session) letters(letters []api.DeadLetter) error {
	rows := make([][]string, len(letters))
	for i := range letters {
		rows[i] = s.letterRow(&letters[i])
	}
	return s.newTable(s.whenHeader(), "EVENT", "TYPE", "CONSUMER", "CODE", "TIMES", "ANSWER").write(rows...)
}

func (s *session) letterRow(l *api.DeadLetter) []string {
	code := "-"
	if l.Code > 0 {
		code = strconv.Itoa(l.Code)
	}
	answer := l.Answer
	var p struct{ Detail string }
	if json.Unmarshal([]byte(l.Answer), &p) == nil && p.Detail != "" {
		answer = p.Detail
	}
	typ := strings.TrimSuffix(strings.TrimPrefix(l.Type, "dev.littoral."), ".v1")
	return []string{
		s.when(l.At),
		s.end(l.EventID),
		typ,
		l.Consumer,
		code,
		strconv.Itoa(l.Deaths),
		or(answer),
	}
}
