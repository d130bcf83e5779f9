package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/problem"
)

type logsCommand struct {
	appArgument
	Component string `arg:"" optional:"" complete:"component" help:"Only of this component."`
	Follow    bool   `short:"f" help:"Go on with what is written, until interrupted."`
	Since     string `default:"1h" placeholder:"TIME" help:"From that long ago, such as 10m, or that time on."`
	Tail      int    `default:"1000" placeholder:"N" help:"How many of the last lines to show, at most 5000."`
	Text      string `placeholder:"TEXT" help:"Only lines that contain this."`
	Times     bool   `short:"t" name:"timestamps" help:"Show when each line was written; -o wide shows that and the place, too."`
	outputFlag
}

// Help is the long help of logs.
func (logsCommand) Help() string {
	return "Example: littoral logs -f shop web\n\nLines of all replicas are merged, wherever they ran. A rule shows where a component was placed, and why. " +
		"With -o json each line or move is a line, with -o yaml a document; -o name prints the pods that wrote. " +
		"A server without a log store asks the clusters whose kubeconfigs it has, which keep what the pods of now wrote."
}

// logs shows lines and moves in the order of time.
type logs struct {
	*session
	command *logsCommand

	mu           sync.Mutex // what follows is used by both streams
	width        int        // of the names before the lines
	named        map[string]bool
	ours, theirs told
	pods         bool // the server has no log store, and its clusters are asked
	missing      string
}

// told is what was shown of one controller. A stream that is taken up again repeats the lines of its last instant, and moves.
type told struct {
	at    time.Time // of the last lines
	lines map[api.LogLine]bool
	moves map[api.LogMove]bool
}

// fresh notes the line or move, and reports whether it is one that was not shown before.
func (t *told) fresh(e api.LogEvent) bool {
	if t.lines == nil {
		t.lines, t.moves = map[api.LogLine]bool{}, map[api.LogMove]bool{}
	}
	if e.Move != nil {
		known := t.moves[*e.Move]
		t.moves[*e.Move] = true
		return !known
	}
	switch {
	case e.Line.At.Before(t.at) || t.lines[*e.Line]:
		return false
	case e.Line.At.After(t.at):
		t.at = e.Line.At
		clear(t.lines)
	}
	t.lines[*e.Line] = true
	return true
}

// Run shows what the containers of an application wrote, and with -f what they write, at the server and at the controller that has the
// application from it, or gave it.
func (c *logsCommand) Run(s *session) error {
	a, err := s.application(s.ctx, c.ID)
	if err != nil {
		return err
	}
	q := api.LogsQuery{App: a.ID, Component: c.Component, Since: c.Since, Tail: c.Tail, Text: c.Text}
	l := &logs{session: s, command: c}
	found, alone, err := l.read(q)
	if err != nil {
		return err
	}
	if len(found.Lines) == 0 && !c.Follow {
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
	if !c.Follow {
		return nil
	}
	return l.follow(q, alone)
}

const mostOfTheirs = 1000

// read returns what both controllers have recorded, in the order of time. One that cannot be asked is left out, and it is said so; alone
// is true when that is the server's own store, and the other one has answered.
func (l *logs) read(q api.LogsQuery) (found *api.Logs, alone bool, err error) {
	found, err = l.client.Logs(l.ctx, q)
	if absent(err) {
		var podsErr error
		if found, podsErr = l.client.PodLogs(l.ctx, q); podsErr == nil {
			l.pods, err = true, nil
			fmt.Fprintln(l.err, "littoral: the server reads no log store; this is what the pods that are there now still have")
			l.lacks(found)
		} else {
			err = advise(problem.New(problem.NotImplemented, "%s; %s", err, podsErr),
				"The server needs a log store (LOGS_BACKEND), or kubeconfigs of the clusters (KUBECONFIG_DIR)")
		}
	}
	if err != nil && (!absent(err) && !passing(err) || l.ctx.Err() != nil) {
		return nil, false, err
	}
	more := q
	more.Tail = min(q.Tail, mostOfTheirs)
	controller, theirs, otherErr := l.client.PeerLogs(l.ctx, more)
	switch {
	case l.ctx.Err() != nil:
		return nil, false, l.ctx.Err()
	case err != nil && otherErr != nil:
		return nil, false, err
	case err != nil:
		fmt.Fprintf(l.err, "littoral: the lines at this controller are not shown: %s\n", printable(err.Error()))
		found, alone = &api.Logs{}, true
	case missing(otherErr): // it was never handed over
	case otherErr != nil:
		fmt.Fprintf(l.err, "littoral: the lines at the other controller are not shown: %s\n", printable(otherErr.Error()))
	}
	for i := range found.Lines {
		l.ours.fresh(api.LogEvent{Line: &found.Lines[i]})
	}
	for i := range found.Moves {
		l.ours.fresh(api.LogEvent{Move: &found.Moves[i]})
	}
	for i := range theirs.Lines {
		l.theirs.fresh(api.LogEvent{Line: &theirs.Lines[i]})
	}
	for i := range theirs.Moves {
		theirs.Moves[i].Message = atController(controller, theirs.Moves[i].Message)
		l.theirs.fresh(api.LogEvent{Move: &theirs.Moves[i]})
	}
	found.Lines = append(found.Lines, theirs.Lines...)
	found.Moves = append(found.Moves, theirs.Moves...)
	slices.SortStableFunc(found.Lines, func(a, b api.LogLine) int { return a.At.Compare(b.At) })
	slices.SortStableFunc(found.Moves, func(a, b api.LogMove) int { return a.At.Compare(b.At) })
	found.Lines = found.Lines[max(len(found.Lines)-l.command.Tail, 0):]
	return found, alone, nil
}

// absent reports whether the server has no such thing.
func absent(err error) bool { return problem.KindOf(err) == problem.NotImplemented }

// lacks says whose lines are not shown, once.
func (l *logs) lacks(found *api.Logs) {
	if text := strings.Join(found.Missing, "; "); text != "" && text != l.missing {
		l.missing = text
		fmt.Fprintf(l.err, "littoral: lines are not shown of %s\n", printable(text))
	}
}

func atController(name, message string) string { return "at " + name + ", " + message }

// follow goes on with what is written at either controller, also when the application moves from one to the other meanwhile.
func (l *logs) follow(q api.LogsQuery, alone bool) error {
	ctx, stop := context.WithCancel(l.ctx)
	defer stop()
	sides := []func(context.Context, api.LogsQuery) error{l.followTheirs}
	switch {
	case alone:
	case l.pods:
		sides = append(sides, l.followPods)
	default:
		sides = append(sides, l.followOurs)
	}
	ended := make(chan error, len(sides))
	for _, side := range sides {
		go func() { ended <- side(ctx, q) }()
	}
	err := <-ended // of the first one, which ends the other
	stop()
	for range len(sides) - 1 {
		if other := <-ended; err == nil {
			err = other
		}
	}
	return err
}

// followTheirs asks the other controller again and again; while there is none, less often.
func (l *logs) followTheirs(ctx context.Context, q api.LogsQuery) error {
	const whileNone = 10
	q.Tail = mostOfTheirs
	for {
		if !l.theirs.at.IsZero() {
			q.Since = l.theirs.at.UTC().Format(time.RFC3339Nano)
		}
		controller, theirs, err := l.client.PeerLogs(ctx, q)
		rest := 1
		switch {
		case ctx.Err() != nil:
			return nil
		case missing(err):
			rest = whileNone
		case err != nil && !l.bears(err):
			return err
		}
		for i := range theirs.Moves {
			theirs.Moves[i].Message = atController(controller, theirs.Moves[i].Message)
			if err := l.tell(&l.theirs, api.LogEvent{Move: &theirs.Moves[i]}); err != nil {
				return err
			}
		}
		for i := range theirs.Lines {
			if err := l.tell(&l.theirs, api.LogEvent{Line: &theirs.Lines[i]}); err != nil {
				return err
			}
		}
		for range rest {
			if l.wait(ctx) != nil {
				return nil
			}
		}
	}
}

// followPods asks for what the pods have written since.
func (l *logs) followPods(ctx context.Context, q api.LogsQuery) error {
	q.Tail = 0
	for l.wait(ctx) == nil {
		if !l.ours.at.IsZero() {
			q.Since = l.ours.at.UTC().Format(time.RFC3339Nano)
		}
		found, err := l.client.PodLogs(ctx, q)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !passing(err):
			return err
		case err != nil:
			continue
		}
		l.lacks(found)
		for i := range found.Moves {
			if err := l.tell(&l.ours, api.LogEvent{Move: &found.Moves[i]}); err != nil {
				return err
			}
		}
		for i := range found.Lines {
			if err := l.tell(&l.ours, api.LogEvent{Line: &found.Lines[i]}); err != nil {
				return err
			}
		}
	}
	return nil
}

// followOurs comes again whenever the server ends a stream, or is away for a while.
func (l *logs) followOurs(ctx context.Context, q api.LogsQuery) error {
	if !l.ours.at.IsZero() {
		q.Since = l.ours.at.UTC().Format(time.RFC3339Nano)
	}
	last := ""
	for {
		next, err := l.client.FollowLogs(ctx, q, last, func(e api.LogEvent) error { return l.tell(&l.ours, e) })
		last = next
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !passing(err):
			return err
		}
		if l.wait(ctx) != nil {
			return nil
		}
	}
}

// tell shows what was not shown before.
func (l *logs) tell(t *told, e api.LogEvent) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !t.fresh(e) {
		return nil
	}
	return l.show(e)
}

const ruleWidth = 78

func (l *logs) show(e api.LogEvent) error {
	if l.format.structured() {
		return l.printOne(e)
	}
	if l.format == asName {
		return l.wrote(e.Line)
	}
	if e.Move != nil {
		text := fmt.Sprintf("── %s %s: %s ", e.Move.At.Local().Format(time.TimeOnly), e.Move.Component, e.Move.Message)
		if text = printable(text); !l.wide() {
			text = cut(text, ruleWidth)
		}
		_, err := fmt.Fprintln(l.out, text+strings.Repeat("─", max(ruleWidth-utf8.RuneCountInString(text), 0)))
		return err
	}
	name := printable(cmp.Or(e.Line.Pod, e.Line.Component, "-"))
	if e.Line.Container != "" && e.Line.Container != e.Line.Component {
		name += "/" + printable(e.Line.Container)
	}
	l.width = max(l.width, utf8.RuneCountInString(name))
	line := name + strings.Repeat(" ", l.width-utf8.RuneCountInString(name)) + " | " + harmless(e.Line.Line)
	switch {
	case l.wide():
		line = e.Line.At.Local().Format("2006-01-02 15:04:05.000-07:00 ") + printable(e.Line.Cluster+"/"+e.Line.Node+" "+or(e.Line.Stream)+" ") + line
	case l.command.Times:
		line = e.Line.At.Local().Format("2006-01-02 15:04:05.000 ") + line
	}
	_, err := fmt.Fprintln(l.out, line)
	return err
}

// wrote prints the name of what wrote a line, the first time.
func (l *logs) wrote(line *api.LogLine) error {
	if line == nil {
		return nil
	}
	name := "pod/" + cmp.Or(line.Pod, line.Component)
	if l.named[name] {
		return nil
	}
	if l.named == nil {
		l.named = map[string]bool{}
	}
	l.named[name] = true
	_, err := l.said(nil, name)
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
