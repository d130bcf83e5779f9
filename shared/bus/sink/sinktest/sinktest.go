// Package sinktest is what every sink of the bus has to do, as tests on a real broker.
package sinktest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/bus/keyexpr"
	"github.com/littoral-project/littoral/shared/bus/sink"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

// Message is what a broker has under a key. A key that was deleted has an empty Payload.
type Message struct{ Key, Payload, Encoding string }

// World is a broker, reached through a wire that can be cut.
type World struct {
	// Open makes the sink of an address of the broker: the path and query are added to it.
	Open func(t *testing.T, rest string) sink.Sink
	// State is what a subscriber gets who comes now.
	State func(t *testing.T) map[string]Message
	// Follow subscribes, and calls each for every message that comes, in order, from one goroutine.
	Follow func(t *testing.T, each func(Message))
	// Cut cuts the wire and Heal mends it.
	Cut, Heal func()
	// Untakable is a key that the broker cannot take; "" = there is none.
	Untakable string
}

type fixture struct {
	*World
	db   *store.DB
	sink sink.Sink
}

func (f *fixture) publish(t *testing.T, changes ...bus.Change) {
	t.Helper()
	require.NoError(t, f.db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return bus.Publish(ctx, tx, changes...)
	}))
}

func (f *fixture) try(ctx context.Context) error {
	return sink.Forward(ctx, f.db, slog.New(slog.DiscardHandler), f.sink)
}

func (f *fixture) forward(t *testing.T) {
	t.Helper()
	require.NoError(t, f.try(t.Context()))
}

func text(key, value string) bus.Change {
	return bus.Change{Key: keyexpr.Expr(key), Encoding: "text/plain", Payload: []byte(value)}
}

func gone(key string) bus.Change { return bus.Change{Key: keyexpr.Expr(key), Delete: true} }

// Run runs the suite, each case with a broker of its own.
func Run(t *testing.T, start func(t *testing.T) *World) {
	for name, test := range map[string]func(*testing.T, *fixture){
		"the state is there for whoever comes late":         late,
		"a prefix and a selection":                          selected,
		"changes of a key come in their order":              ordered,
		"killed at every boundary":                          killed,
		"after a crash between sending and noting":          crashed,
		"the last state comes after the broker was away":    away,
		"two at once send each change":                      twice,
		"what it cannot take does not hold up the rest":     untakable,
		"a great value":                                     great,
		"a sink that is new gets everything":                anew,
		"a deletion is kept for a broker that is away long": forgotten,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t)
			test(t, &fixture{w, storetest.New(t), w.Open(t, "")})
		})
	}
}

func late(t *testing.T, f *fixture) {
	f.publish(t, bus.Change{Key: "a/b", Encoding: bus.JSON, Payload: []byte(`{"n":1}`)}, text("a/c", "1"), text("ü/x y", "1"))
	f.forward(t)
	require.Equal(t, map[string]Message{
		"a/b": {"a/b", `{"n":1}`, bus.JSON}, "a/c": {"a/c", "1", "text/plain"}, "ü/x y": {"ü/x y", "1", "text/plain"},
	}, f.State(t))
	f.publish(t, text("a/c", "2"), gone("a/b"))
	f.forward(t)
	require.Equal(t, map[string]Message{"a/c": {"a/c", "2", "text/plain"}, "ü/x y": {"ü/x y", "1", "text/plain"}}, f.State(t))
}

func selected(t *testing.T, f *fixture) {
	f.sink = f.Open(t, "/site/1?select=a/*")
	f.publish(t, text("a/b", "1"), text("a/b/c", "1"), text("b", "1"), text("mdm/x", "1"))
	f.forward(t)
	require.Equal(t, map[string]Message{"site/1/a/b": {"site/1/a/b", "1", "text/plain"}}, f.State(t))
}

// ordered: a subscriber sees the numbers of a key grow only, and at last the last one, though many forward at the same time.
func ordered(t *testing.T, f *fixture) {
	const last = 60
	done, wrong := make(chan struct{}), make(chan string, 1)
	before := map[string]int{}
	f.Follow(t, func(m Message) {
		n := 0
		_, _ = fmt.Sscan(m.Payload, &n)
		if n < before[m.Key] {
			select {
			case wrong <- fmt.Sprintf("%s: %d after %d", m.Key, n, before[m.Key]):
			default:
			}
		}
		if before[m.Key] = n; before["a/0"] == last && before["a/1"] == last && before["a/2"] == last {
			select {
			case <-done:
			default:
				close(done)
			}
		}
	})
	errs := make(chan error, last)
	for n := 1; n <= last; n++ {
		for key := range 3 {
			f.publish(t, text(fmt.Sprintf("a/%d", key), fmt.Sprint(n)))
		}
		go func() { errs <- f.try(t.Context()) }()
	}
	for range last {
		require.NoError(t, <-errs)
	}
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		require.Fail(t, "the last state has not come")
	}
	select {
	case text := <-wrong:
		require.Fail(t, "an older state came after a newer one", text)
	default:
	}
}

// crashed: whoever comes after one that has sent and not noted it sends the same again, and what has changed since.
func crashed(t *testing.T, f *fixture) {
	f.publish(t, text("a", "1"), text("b", "1"))
	f.forward(t)
	_, err := f.db.Exec(t.Context(), "update bus_sinks set number = 0")
	require.NoError(t, err)
	f.publish(t, text("a", "2"), gone("b"))
	f.forward(t)
	require.Equal(t, map[string]Message{"a": {"a", "2", "text/plain"}}, f.State(t))
}

func away(t *testing.T, f *fixture) {
	f.publish(t, text("a", "1"), text("b", "1"))
	f.forward(t)
	f.Cut()
	f.publish(t, text("a", "2"), gone("b"))
	err := f.try(t.Context())
	require.Equal(t, problem.Unavailable, problem.KindOf(err), "%v", err)
	f.publish(t, text("a", "3"))
	f.Heal()
	f.forward(t)
	require.Equal(t, map[string]Message{"a": {"a", "3", "text/plain"}}, f.State(t))
}

func twice(t *testing.T, f *fixture) {
	for i := range 40 {
		f.publish(t, text(fmt.Sprintf("k/%d", i), "1"))
	}
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() { errs <- f.try(t.Context()) }()
	}
	for range cap(errs) {
		require.NoError(t, <-errs)
	}
	require.Len(t, f.State(t), 40)
}

func untakable(t *testing.T, f *fixture) {
	if f.Untakable == "" {
		t.Skip("it takes every key")
	}
	f.publish(t, text("a", "1"), text(f.Untakable, "1"), text("b", "1"))
	f.forward(t)
	require.Equal(t, map[string]Message{"a": {"a", "1", "text/plain"}, "b": {"b", "1", "text/plain"}}, f.State(t))
	behind, err := bus.Behind(t.Context(), f.db, f.cursor(t))
	require.NoError(t, err)
	require.False(t, behind)
}

func (f *fixture) cursor(t *testing.T) int64 {
	c, err := bus.CursorOf(t.Context(), f.db, f.sink.Name())
	require.NoError(t, err)
	return c.After
}

func great(t *testing.T, f *fixture) {
	value := strings.Repeat("x", 512<<10)
	f.publish(t, text("a", value))
	f.forward(t)
	require.Len(t, f.State(t)["a"].Payload, len(value))
}

func anew(t *testing.T, f *fixture) {
	var changes []bus.Change
	for i := range 500 {
		changes = append(changes, text(fmt.Sprintf("k/%d", i), "1"))
	}
	f.publish(t, changes...)
	f.forward(t)
	require.Len(t, f.State(t), 500)
	f.sink = f.Open(t, "/other")
	f.forward(t)
	require.Len(t, f.State(t), 1000)
	require.NoError(t, bus.ForgetSinks(t.Context(), f.db, []string{f.sink.Name()}))
	f.sink = f.Open(t, "")
	require.Zero(t, f.cursor(t))
}

func forgotten(t *testing.T, f *fixture) {
	f.publish(t, text("a", "1"))
	f.forward(t)
	f.publish(t, gone("a"))
	require.NoError(t, bus.Forget(t.Context(), f.db, 0))
	f.forward(t)
	require.Empty(t, f.State(t))
	require.NoError(t, bus.Forget(t.Context(), f.db, 0))
	number, err := bus.Forgotten(t.Context(), f.db)
	require.NoError(t, err)
	require.Equal(t, f.cursor(t), number)
}
