package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
)

// Trouble is what an agent cannot do at present. It is logged when it begins, when it changes and when it has ended: a controller
// that is away must not fill the log.
type Trouble struct {
	log *slog.Logger

	mu  sync.Mutex
	now map[string]string // by the kind of work
}

// NewTrouble returns one without any.
func NewTrouble(log *slog.Logger) *Trouble { return &Trouble{log: log, now: map[string]string{}} }

// Noted says how a kind of work went.
func (t *Trouble) Noted(ctx context.Context, work string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	t.mu.Lock()
	before := t.now[work]
	t.now[work] = text
	t.mu.Unlock()
	switch {
	case text == before || ctx.Err() != nil:
	case text == "":
		t.log.InfoContext(ctx, "works again", "work", work)
	default:
		t.log.WarnContext(ctx, "cannot work; it will try again", "work", work, "error", text)
	}
}

// Write prints it, a line for each.
func (t *Trouble) Write(w io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, work := range slices.Sorted(maps.Keys(t.now)) {
		if text := t.now[work]; text != "" {
			_, _ = fmt.Fprintf(w, "%s: %s\n", work, text)
		}
	}
}
