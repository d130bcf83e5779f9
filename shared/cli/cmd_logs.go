package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/littoral-project/littoral/shared/api"
)

type logsCommand struct {
	appArgument
	Component string `arg:"" optional:"" complete:"component" help:"Only of this component."`
	Follow    bool   `short:"f" help:"Go on with what is written, until interrupted."`
	Since     string `default:"1h" placeholder:"TIME" help:"From that long ago, such as 10m, or that time on."`
	Tail      int    `default:"1000" placeholder:"N" help:"How many of the last lines to show, at most 5000."`
	Text      string `placeholder:"TEXT" help:"Only lines that contain this."`
	Times     bool   `short:"t" name:"timestamps" help:"Show when each line was written."`
	Output    format `short:"o" enum:"table,json" default:"table" help:"How to show it: ${enum}; json has one line or move in each line."`
}

// Help is the long help of logs.
func (logsCommand) Help() string {
	return "Example: littoral logs -f shop web\n\nLines of all replicas are merged, wherever they ran. A rule shows where a component was placed, and why."
}

// logs shows lines and moves in the order of time.
type logs struct {
	*session
	command *logsCommand
	width   int // of the names before the lines

	at    time.Time // of the last lines
	lines map[api.LogLine]bool
	moves map[api.LogMove]bool // a stream that is taken up again repeats those of its last instant
}

// Run shows what the containers of an application wrote, and with -f what they write.
func (c *logsCommand) Run(s *session) error {
	a, err := s.application(s.ctx, c.ID)
	if err != nil {
		return err
	}
	q := api.LogsQuery{App: a.ID, Component: c.Component, Since: c.Since, Tail: c.Tail, Text: c.Text}
	l := &logs{session: s, command: c, lines: map[api.LogLine]bool{}, moves: map[api.LogMove]bool{}}
	switch {
	case c.Follow && a.Status == handed:
		return l.followTheirs(q)
	case c.Follow:
		return l.follow(q)
	}
	found, err := s.client.Logs(s.ctx, q)
	if err != nil {
		return err
	}
	if err := l.withTheirs(q, found); err != nil {
		return err
	}
	if len(found.Lines) == 0 {
		_, err := fmt.Fprintln(s.err, "No lines. Look further back with --since.")
		return err
	}
	moves := found.Moves
	for i := range found.Lines {
		for len(moves) > 0 && !moves[0].At.After(found.Lines[i].At) {
			if err := l.show(api.LogEvent{Move: &moves[0]}); err != nil {
				return err
			}
			moves = moves[1:]
		}
		if err := l.show(api.LogEvent{Line: &found.Lines[i]}); err != nil {
			return err
		}
	}
	for i := range moves {
		if err := l.show(api.LogEvent{Move: &moves[i]}); err != nil {
			return err
		}
	}
	return nil
}

// withTheirs adds what is recorded at the controller that has the application from the server, or gave it.
func (l *logs) withTheirs(q api.LogsQuery, found *api.Logs) error {
	q.Tail = min(q.Tail, mostOfTheirs)
	controller, theirs, err := l.client.PeerLogs(l.ctx, q)
	switch {
	case l.ctx.Err() != nil:
		return l.ctx.Err()
	case missing(err): // it was never handed over
		return nil
	case err != nil:
		fmt.Fprintf(l.err, "littoral: the lines at the other controller are not shown: %s\n", printable(err.Error()))
		return nil
	}
	for i := range theirs.Moves {
		theirs.Moves[i].Message = "at " + controller + ", " + theirs.Moves[i].Message
	}
	found.Lines = append(found.Lines, theirs.Lines...)
	found.Moves = append(found.Moves, theirs.Moves...)
	slices.SortStableFunc(found.Lines, func(a, b api.LogLine) int { return a.At.Compare(b.At) })
	slices.SortStableFunc(found.Moves, func(a, b api.LogMove) int { return a.At.Compare(b.At) })
	found.Lines = found.Lines[max(len(found.Lines)-l.command.Tail, 0):]
	return nil
}

const (
	mostOfTheirs = 1000
	handed       = "Away" // the status of an application that another controller has
)

// followTheirs goes on with what the controller that has the application reads from its log store.
func (l *logs) followTheirs(q api.LogsQuery) error {
	q.Tail = mostOfTheirs
	for {
		controller, theirs, err := l.client.PeerLogs(l.ctx, q)
		switch {
		case l.ctx.Err() != nil:
			return nil
		case err != nil && !l.bears(err):
			return err
		}
		for i := range theirs.Moves {
			theirs.Moves[i].Message = "at " + controller + ", " + theirs.Moves[i].Message
			if err := l.fresh(api.LogEvent{Move: &theirs.Moves[i]}); err != nil {
				return err
			}
		}
		for i := range theirs.Lines {
			if theirs.Lines[i].At.Before(l.at) {
				continue
			}
			if err := l.fresh(api.LogEvent{Line: &theirs.Lines[i]}); err != nil {
				return err
			}
		}
		if !l.at.IsZero() {
			q.Since = l.at.UTC().Format(time.RFC3339Nano)
		}
		if l.wait(l.ctx) != nil {
			return nil
		}
	}
}

// follow comes again whenever the server ends a stream, or is away for a while.
func (l *logs) follow(q api.LogsQuery) error {
	last, worked := "", false
	for {
		next, err := l.client.FollowLogs(l.ctx, q, last, l.fresh)
		worked = worked || next != last
		last = next
		switch {
		case l.ctx.Err() != nil:
			return nil
		case errors.Is(err, errShown):
			return err
		case err != nil && (!worked || !passing(err)):
			return err
		}
		if l.wait(l.ctx) != nil {
			return nil
		}
	}
}

// errShown is the error of what could not be shown.
var errShown = errors.New("cannot write")

// fresh shows what was not shown before.
func (l *logs) fresh(e api.LogEvent) error {
	switch {
	case e.Move != nil && l.moves[*e.Move], e.Line != nil && l.lines[*e.Line]:
		return nil
	case e.Move != nil:
		l.moves[*e.Move] = true
	case e.Line.At.After(l.at):
		l.at = e.Line.At
		clear(l.lines)
		fallthrough
	default:
		l.lines[*e.Line] = true
	}
	if err := l.show(e); err != nil {
		return errors.Join(errShown, err)
	}
	return nil
}

const ruleWidth = 78

func (l *logs) show(e api.LogEvent) error {
	if l.command.Output.structured() {
		return l.printOne(l.command.Output, e)
	}
	if e.Move != nil {
		text := fmt.Sprintf("── %s %s: %s ", e.Move.At.Local().Format(time.TimeOnly), e.Move.Component, e.Move.Message)
		text = cut(printable(text), ruleWidth)
		_, err := fmt.Fprintln(l.out, text+strings.Repeat("─", max(ruleWidth-utf8.RuneCountInString(text), 0)))
		return err
	}
	name := printable(cmp.Or(e.Line.Pod, e.Line.Component, "-"))
	if e.Line.Container != "" && e.Line.Container != e.Line.Component {
		name += "/" + printable(e.Line.Container)
	}
	l.width = max(l.width, utf8.RuneCountInString(name))
	line := name + strings.Repeat(" ", l.width-utf8.RuneCountInString(name)) + " | " + harmless(e.Line.Line)
	if l.command.Times {
		line = e.Line.At.Local().Format("2006-01-02 15:04:05.000 ") + line
	}
	_, err := fmt.Fprintln(l.out, line)
	return err
}

// harmless leaves a line as its container wrote it, but for what a terminal would act on.
func harmless(line string) string {
	var b strings.Builder
	for _, r := range line {
		if r != '\t' && (unicode.IsControl(r) || r == utf8.RuneError || unicode.Is(unicode.Bidi_Control, r)) {
			fmt.Fprintf(&b, `\x%02x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
