package observe

import (
	"context"
	"log/slog"

	"github.com/littoral-project/littoral/shared/trace"
)

// LogHandler returns inner with trace_id and span_id in every record whose context is in a trace.
func LogHandler(inner slog.Handler) slog.Handler { return logHandler{inner} }

type logHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	if id := trace.ID(ctx); id != "" {
		r.AddAttrs(slog.String("trace_id", id), slog.String("span_id", trace.Span(ctx)))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }
