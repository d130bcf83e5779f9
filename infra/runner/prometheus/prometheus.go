// Package prometheus runs Prometheus inside the laptop host: its own storage, query engine, rule manager and HTTP API,
// in a directory of the home. Only scraping is missing, since the fleet appends its samples directly.
//
// The API is Prometheus' own handler (web/api/v1), so a client sees no difference. A sample is in the write-ahead log
// before Append returns, and so survives a kill -9 of the host.
package prometheus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/compression"
)

// Options of a Server.
type Options struct {
	Dir       string        // of the storage; created if missing
	Retention time.Duration // how long samples are kept; 0 = DefaultRetention
	Disorder  time.Duration // how much older than the newest of its series a sample may be; 0 = ten minutes
	Log       *slog.Logger  // gets warnings and errors; nil = none
}

// DefaultRetention is several times the longest range that Littoral's rules query.
const DefaultRetention = 3 * time.Hour

const (
	// blockRange is how much time the head holds before it becomes a block. With Prometheus' two hours, most of a
	// laptop's retention would be in the write-ahead log, which a restart has to replay.
	blockRange = 30 * time.Minute

	// disorder is how much older than the newest sample of its series a sample may be: a laptop's clock is set back at
	// times.
	disorder = 10 * time.Minute

	// lookback is how long an instant query still returns a series without new samples (Prometheus' default).
	lookback = 5 * time.Minute

	// maxBytes is the most that blocks take on disk, whatever their age: of 5,000 nodes several hours.
	maxBytes = 2 << 30

	queryTimeout = 30 * time.Second
	querySamples = 5_000_000 // that one query may hold in memory
)

// Sample is one value of one series.
type Sample struct {
	Name   string
	Labels map[string]string
	Value  float64
	At     time.Time // with a precision of a millisecond
}

// Stale is the value that ends a series at once instead of after the lookback. A scrape writes it for a series that its
// target no longer exposes.
var Stale = math.Float64frombits(value.StaleNaN)

// Server is a running Prometheus.
type Server struct {
	db      *tsdb.DB
	engine  *promql.Engine
	queries parser.Parser
	handler http.Handler
	log     *slog.Logger

	rules     *rules.Manager // nil before Evaluate
	evaluated RuleOptions
	reloading sync.Mutex
}

// Open opens the storage and replays the log that the former process left.
func Open(o Options) (*Server, error) {
	if o.Retention == 0 {
		o.Retention = DefaultRetention
	}
	log := promslog.NewNopLogger()
	if o.Log != nil {
		log = slog.New(quiet{o.Log.Handler()})
	}
	settings := tsdb.DefaultOptions()
	settings.RetentionDuration = o.Retention.Milliseconds()
	settings.MinBlockDuration = blockRange.Milliseconds()
	settings.MaxBlockDuration = max(blockRange, o.Retention/3).Milliseconds()
	settings.MaxBytes = maxBytes
	settings.OutOfOrderTimeWindow = cmp.Or(o.Disorder, disorder).Milliseconds()
	settings.WALCompression = compression.Snappy
	db, err := tsdb.Open(o.Dir, log, nil, settings, tsdb.NewDBStats())
	if err != nil {
		return nil, fmt.Errorf("prometheus storage in %s: %w", o.Dir, err)
	}
	queries := parser.NewParser(parser.Options{})
	s := &Server{db: db, queries: queries, log: log, engine: promql.NewEngine(promql.EngineOpts{
		Logger: log, Parser: queries,
		MaxSamples: querySamples, Timeout: queryTimeout, LookbackDelta: lookback,
		EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
	})}
	s.handler = newHandler(s, o, queries, log)
	return s, nil
}

// Append stores all samples, or none if one of them cannot be stored. A sample older than the disorder window is
// dropped silently, as in a scrape.
func (s *Server) Append(ctx context.Context, samples []Sample) error {
	a := s.db.Appender(ctx)
	for _, sample := range samples {
		series := make(map[string]string, len(sample.Labels)+1)
		for name, text := range sample.Labels {
			series[name] = text
		}
		series[model.MetricNameLabel] = sample.Name
		_, err := a.Append(0, labels.FromMap(series), sample.At.UnixMilli(), sample.Value)
		if err == nil || errors.Is(err, storage.ErrTooOldSample) || errors.Is(err, storage.ErrOutOfBounds) {
			continue
		}
		return errors.Join(fmt.Errorf("append %s%v: %w", sample.Name, sample.Labels, err), a.Rollback())
	}
	if err := a.Commit(); err != nil {
		return fmt.Errorf("append %d samples: %w", len(samples), err)
	}
	return nil
}

// Handler serves /api/v1/... and /-/healthy, /-/ready below the root.
func (s *Server) Handler() http.Handler { return s.handler }

// Close ends the evaluation of rules, waits for running queries and closes the storage.
func (s *Server) Close() error {
	if s.rules != nil {
		s.rules.Stop()
	}
	return errors.Join(s.engine.Close(), s.db.Close())
}

// quiet passes only warnings and errors on: the storage logs each routine step at level info.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }
func (q quiet) WithGroup(name string) slog.Handler       { return quiet{q.Handler.WithGroup(name)} }
