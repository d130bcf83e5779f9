package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/problem"
)

type eventsCommand struct {
	ID string `arg:"" optional:"" xor:"app" complete:"app" help:"The same as --app."`

	App       string        `xor:"app" placeholder:"ID" complete:"app" help:"Only of this application: id, beginning of its id, or name; of one that is gone its whole id."`
	Since     time.Duration `placeholder:"TIME" help:"Only of that time, such as 1h."`
	Component string        `placeholder:"NAME" help:"Only of this component."`
	Type      []string      `placeholder:"EVENT" help:"Only events of this type, such as job.finished; repeatable."`

	Tail int `default:"100" help:"How many of the last to show, at most 1000."`
	outputFlag
	Watch    bool `short:"w" help:"Go on showing what happens, until interrupted."`
	Archived bool `help:"Show what happened long ago and was moved to the archive, by the same choice."`
	Dead     bool `help:"Show the events that a function did not take and that were given up."`
}

// events shows history; names has the names of applications by id.
type events struct {
	*session
	types  []string
	keep   func(*session, *api.Entry) bool // what a watch shows
	app    string
	gone   error // not nil if the application asked for does not exist any more
	table  *table
	names  map[string]string
	silent string // why that one was not heard, as it was said last
	theirs int64  // the last entry that was seen of the controller that has the application, or gave it
}

// Run shows what happened, and with -w what happens.
func (c *eventsCommand) Run(s *session) error {
	if c.ID != "" {
		c.App = c.ID
	}
	if c.Tail < 1 || c.Tail > 1000 {
		return usagef("--tail must be from 1 to 1000, not %d", c.Tail)
	}
	if c.Dead {
		return c.dead(s)
	}
	if c.Archived && c.Watch {
		return usagef("nothing happens in the archive: --archived and --watch do not go together")
	}
	e := &events{session: s, types: c.Type, names: map[string]string{}}
	if err := e.choose(c); err != nil {
		return err
	}
	read := s.client.History
	if c.Archived {
		read = s.client.ArchivedHistory
	}
	e.keep = c.matches
	list, err := read(s.ctx, api.HistoryQuery{App: e.app, After: -1, Limit: c.Tail, Events: c.Type})
	if err != nil {
		return err
	}
	last := int64(0)
	if len(list) > 0 {
		last = list[len(list)-1].ID
	}
	e.theirs = -1
	if !c.Archived {
		list = e.withTheirs(list, c.Tail)
		list = list[max(len(list)-c.Tail, 0):]
	}
	list = slices.DeleteFunc(list, func(entry api.Entry) bool { return !c.matches(s, &entry) })
	if len(list) == 0 && e.gone != nil {
		return e.gone // it has no history either
	}
	e.table = s.newTable("TIME", "EVENT", "APP", "COMPONENT", "+STATE", "+CAUSE", "+TRACE", "MESSAGE")
	if c.Watch {
		return e.watch(list, last)
	}
	if done, err := s.said(list, entryNames(list)...); done {
		return err
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(s.err, "No events.")
		return err
	}
	return e.show(list)
}

// matches reports whether the flags let an entry through that the server does not choose by them.
func (c *eventsCommand) matches(s *session, e *api.Entry) bool {
	return (c.Component == "" || e.Component == c.Component) && (c.Since <= 0 || s.now().Sub(e.At) <= c.Since)
}

// choose finds the application that is asked for. One that is gone can only be named by its whole id.
func (e *events) choose(c *eventsCommand) error {
	if c.App == "" {
		return nil
	}
	a, err := e.application(e.ctx, c.App)
	id := strings.ToLower(c.App)
	switch {
	case missing(err) && len(id) == idLength && isIDPrefix(id):
		e.app, e.gone = id, err
		return nil
	case err != nil:
		return err
	}
	e.app, e.names[a.ID] = a.ID, a.Name
	return nil
}

// watch shows the list and then whatever comes, until the user has seen enough.
func (e *events) watch(list []api.Entry, after int64) error {
	for {
		list = slices.DeleteFunc(list, func(entry api.Entry) bool { return !e.keep(e.session, &entry) })
		if err := e.show(list); err != nil {
			return err
		}
		if e.wait(e.ctx) != nil {
			return nil
		}
		var err error
		list, err = e.client.History(e.ctx, api.HistoryQuery{App: e.app, After: after, Events: e.types})
		switch {
		case e.ctx.Err() != nil:
			return nil
		case !e.bears(err) && err != nil:
			return err
		}
		if len(list) > 0 {
			after = list[len(list)-1].ID
		}
		list = e.withTheirs(list, 0)
	}
}

// withTheirs adds what the controller recorded that has the application from the server, or gave it. That one may be away: then the
// server's own entries are shown, and it is said so.
func (e *events) withTheirs(list []api.Entry, most int) []api.Entry {
	if e.app == "" {
		return list
	}
	_, theirs, err := e.client.PeerHistory(e.ctx, e.app, e.theirs, most)
	if e.ctx.Err() != nil || missing(err) || problem.KindOf(err) == problem.Forbidden { // it was never handed over, or it is an older server
		return list
	}
	if err != nil {
		if text := printable(err.Error()); text != e.silent {
			fmt.Fprintf(e.err, "littoral: what the other controller recorded is not shown: %s\n", text)
			e.silent = text
		}
		return list
	}
	if len(theirs) > 0 {
		e.theirs = theirs[len(theirs)-1].ID
	}
	if len(e.types) > 0 {
		theirs = slices.DeleteFunc(theirs, func(entry api.Entry) bool { return !slices.Contains(e.types, entry.Event) })
	}
	list = append(list, theirs...)
	slices.SortStableFunc(list, func(a, b api.Entry) int { return a.At.Compare(b.At) })
	return list
}

func (e *events) show(list []api.Entry) error {
	if len(list) == 0 {
		return nil
	}
	if e.format.structured() {
		return printEach(e.session, list)
	}
	if done, err := e.said(list, entryNames(list)...); done {
		return err
	}
	if err := e.learn(list); err != nil {
		return err
	}
	rows := make([][]string, len(list))
	for i := range list {
		rows[i] = e.row(&list[i])
	}
	return e.table.write(rows...)
}

func (e *events) row(entry *api.Entry) []string {
	state, message := entry.ToState, entry.Message
	if entry.FromState != "" && entry.FromState != entry.ToState {
		state = entry.FromState + " > " + entry.ToState
	}
	if entry.Controller != "" {
		message = "at " + entry.Controller + ": " + message
	}
	return []string{
		e.at(entry.At), entry.Event, or(e.names[entry.ApplicationID]), or(entry.Component), or(state), or(entry.Cause), or(entry.TraceID),
		message,
	}
}

// entryNames tell entries of the history apart; each controller counts its own.
func entryNames(list []api.Entry) []string {
	return namesOf("event", list, func(e *api.Entry) string {
		return strings.TrimPrefix(e.Controller+"/"+strconv.FormatInt(e.ID, 10), "/")
	})
}

// learn looks up the names of the applications that the entries are about; one that is gone is shown by the beginning
// of its id. The server is asked once for all unknown ones.
func (e *events) learn(list []api.Entry) error {
	var unknown bool
	for i := range list {
		id := list[i].ApplicationID
		if name := list[i].Application; name != "" { // also of one that is deleted
			e.names[id] = name
		}
		if _, known := e.names[id]; !known && id != "" {
			e.names[id], unknown = shortID(id), true
		}
	}
	if !unknown {
		return nil
	}
	apps, err := e.client.Applications(e.ctx, api.Filter{Light: true})
	if err != nil && e.ctx.Err() == nil && !passing(err) {
		return err
	}
	for i := range apps {
		e.names[apps[i].ID] = apps[i].Name
	}
	return nil
}
