package sinktest

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/bus/sink"
)

// mortal is a sink whose user dies at a boundary: before or after it connects, and before or after each page is sent.
type mortal struct {
	sink.Sink

	passed, dies int
}

type death struct{}

func (m *mortal) boundary() {
	if m.passed++; m.passed == m.dies {
		panic(death{})
	}
}

// Open passes two boundaries.
func (m *mortal) Open(ctx context.Context, client uuid.UUID) (sink.Session, error) {
	m.boundary()
	s, err := m.Sink.Open(ctx, client)
	if err == nil {
		m.boundary()
	}
	return mortalSession{s, m}, err
}

type mortalSession struct {
	sink.Session

	of *mortal
}

// Send passes two boundaries.
func (s mortalSession) Send(ctx context.Context, values []bus.Value, refused func(bus.Value, error)) error {
	s.of.boundary()
	if err := s.Session.Send(ctx, values, refused); err != nil {
		return err
	}
	s.of.boundary()
	return nil
}

// run forwards, and reports whether that ended by a death. A dead one leaves its claim, which ends by itself.
func (f *fixture) run(t *testing.T) (died bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, is := r.(death); !is {
				panic(r)
			}
			died = true
			_, err := f.db.Exec(t.Context(), "update claims set ends_at = now() - interval '1 s'")
			require.NoError(t, err)
		}
	}()
	f.forward(t)
	return false
}

// killed: whoever dies at whatever boundary, and what is published meanwhile, the broker ends with the last state.
func killed(t *testing.T, f *fixture) {
	whole := f.sink
	for dies, round := 1, 0; ; dies, round = dies+1, round+1 {
		var changes []bus.Change
		for i := range 450 { // some pages
			change := text(fmt.Sprintf("k/%d", i), fmt.Sprint(round))
			if (i+round)%7 == 0 {
				change = gone(string(change.Key))
			}
			changes = append(changes, change)
		}
		f.publish(t, changes...)
		m := &mortal{Sink: whole, dies: dies}
		f.sink = m
		died := f.run(t)
		if died {
			f.publish(t, text("k/0", "later"), gone("k/1"))
			f.sink = whole
			require.False(t, f.run(t))
		}
		want := map[string]Message{}
		require.NoError(t, bus.Get(t.Context(), f.db, "**", func(v bus.Value) error {
			want[string(v.Key)] = Message{string(v.Key), string(v.Payload), v.Encoding}
			return nil
		}))
		require.Equal(t, want, f.State(t), "killed at boundary %d", dies)
		if !died {
			require.Greater(t, m.passed, 6)
			return
		}
	}
}
