// Package logs answers what the containers of an application wrote, wherever they ran, and goes on with what they write.
package logs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/bus"
	shared "github.com/littoral-project/littoral/shared/feed"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/history/feed"
	"github.com/littoral-project/littoral/shared/logs"
	asked "github.com/littoral-project/littoral/shared/logs/ask"
	"github.com/littoral-project/littoral/shared/logs/moves"
	"github.com/littoral-project/littoral/shared/logs/open"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/sse"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/telemetry/tenant"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:      []function.Route{{Pattern: "GET /telemetry/logs", Role: auth.Viewer}},
	Stream:      function.Stream{For: 5 * time.Minute},
	Class:       function.Series,
	Concurrency: 50, // each stream asks the log store once a second
	Needs:       []function.Need{function.Logs, function.BusTokens},
}

// Function is the operation with its store. Applications are known by their own tokens.
type Function struct {
	bus.Tokens
	db   *store.DB
	logs logs.Store
	feed *shared.Feed[history.Entry]
}

// New opens the store that the settings choose.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB, feed: feed.New(env.DB.As(store.Everybody))} // one feed serves all readers
	var config open.Config
	if err := errors.Join(env.Config(&f.Tokens), env.Config(&config)); err != nil {
		return nil, err
	}
	var err error
	f.logs, err = open.Store(config, env.HTTP)
	return f, err
}

const (
	every   = time.Second // between questions to the log store
	usually = 1000        // lines
)

// question is what the caller wants to know.
type question struct {
	app    uuid.UUID
	query  logs.Query
	follow bool
}

// Handle answers lines as JSON, or with follow=true as server-sent events: "opened", then "line" and "move" in the order of
// time. The id of an event is the instant of the last line; lines of that very instant come again after it.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	ask, err := read(r, auth.From(r.Context()), time.Now())
	if err != nil {
		return err
	}
	theirs, err := tenant.May(r.Context(), f.db, auth.From(r.Context()), ask.app)
	if err != nil {
		return store.Classify(err)
	}
	if ask.follow {
		return f.follow(w, r, theirs, ask)
	}
	answer, err := f.answer(r.Context(), theirs, ask)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, answer)
}

func read(r *http.Request, caller auth.Principal, now time.Time) (question, error) {
	q := function.NewQuery(r, append(asked.Names(), "app", "follow")...)
	ask := question{follow: q.Bool("follow"), query: asked.Query(q, now, usually, logs.MaxLines)}
	switch id := q.ID("app"); {
	case id != nil:
		ask.app = *id
	case caller.Application != "":
		ask.app, _ = uuid.Parse(caller.Application)
	case q.Text("app") == "":
		q.Fault("app", "is missing: the id of an application")
	}
	ask.query.Application = ask.app.String()
	if last, err := sse.LastID(r, ""); err != nil {
		return ask, err
	} else if ask.follow && last != nil { // it goes on after what the reader has
		ask.query.From, ask.query.Newest, ask.query.Limit = time.Unix(0, *last).UTC(), false, logs.MaxLines
	}
	if ask.follow && !ask.query.To.IsZero() {
		q.Fault("until", "does not go together with follow")
	}
	return ask, q.Err()
}

func (f *Function) answer(ctx context.Context, theirs store.Querier, ask question) (*moves.Answer, error) {
	return moves.Read(ctx, theirs, f.logs, ask.app, ask.query)
}

// moved reports whether the entry is a move of what is asked about.
func (q question) moved(e history.Entry) bool { return moves.About(q.app, q.query.Component, e) }

// follow answers the last lines and then what comes.
func (f *Function) follow(w http.ResponseWriter, r *http.Request, theirs store.Querier, ask question) error {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	reader, err := f.feed.Open(ctx, nil)
	if err != nil {
		return store.Classify(err)
	}
	answer, err := f.answer(ctx, theirs, ask)
	if err != nil {
		reader.Close()
		return err
	}
	out, err := sse.Start(w, sse.Retry)
	if err != nil {
		reader.Close()
		return nil // the caller has gone
	}
	moved, ended := make(chan moves.Move, moves.Most), make(chan error, 1)
	go func() {
		defer reader.Close()
		ended <- reader.Follow(ctx, ask.moved, time.Hour, func(e history.Entry) error {
			select {
			case moved <- moves.Of(e):
			case <-ctx.Done():
			}
			return nil
		}, func() error { return nil })
	}()
	t := &teller{out: out, last: ask.query.From}
	if err := out.Send(sse.Event{ID: t.id(), Name: "opened", Data: "{}"}); err != nil {
		return nil
	}
	if err := t.tell(answer.Lines, answer.Moves); err != nil {
		return nil
	}
	query := ask.query
	if len(answer.Lines) > 0 {
		query.From = answer.Lines[0].At
	}
	return sse.Ended(r.Context(), t.follow(ctx, logs.Follow(f.logs, query, time.Now, answer.Lines), moved, ended))
}

// teller writes lines and moves to a stream.
type teller struct {
	out  *sse.Writer
	last time.Time // of the lines that were sent
	sent time.Time
}

func (t *teller) id() string { return strconv.FormatInt(t.last.UnixNano(), 10) }

// patience is how many questions in a row the log store may leave without an answer.
const patience = 10

func (t *teller) follow(ctx context.Context, f *logs.Follower, coming <-chan moves.Move, ended <-chan error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for failed := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return err
		case <-tick.C:
		}
		fresh, err := f.Next(ctx)
		if failed++; err != nil && failed >= patience {
			return err
		}
		if err == nil {
			failed = 0
		}
		var moved []moves.Move
		for len(coming) > 0 {
			moved = append(moved, <-coming)
		}
		if err := t.tell(fresh, moved); err != nil {
			return problem.Wrap(problem.Unavailable, err, "the reader has gone")
		}
	}
}

// tell sends lines and moves in the order of time, or a sign of life when there has been nothing for a while.
func (t *teller) tell(lines []logs.Entry, moved []moves.Move) error {
	slices.SortStableFunc(moved, func(a, b moves.Move) int { return a.At.Compare(b.At) })
	if len(lines)+len(moved) == 0 {
		if time.Since(t.sent) < sse.Quiet {
			return nil
		}
		t.sent = time.Now()
		return t.out.Alive()
	}
	for len(lines)+len(moved) > 0 {
		var what any
		name := "line"
		if len(lines) == 0 || len(moved) > 0 && cmp.Compare(moved[0].At.UnixNano(), lines[0].At.UnixNano()) <= 0 {
			name, what, moved = "move", moved[0], moved[1:]
		} else {
			if lines[0].At.After(t.last) {
				t.last = lines[0].At
			}
			what, lines = lines[0], lines[1:]
		}
		data, err := json.Marshal(what)
		if err != nil {
			return err
		}
		if err := t.out.Send(sse.Event{ID: t.id(), Name: name, Data: string(data)}); err != nil {
			return err
		}
	}
	t.sent = time.Now()
	return nil
}
