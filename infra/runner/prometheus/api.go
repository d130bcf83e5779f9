package prometheus

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"time"

	"github.com/grafana/regexp"
	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/route"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/notifications"
	v1 "github.com/prometheus/prometheus/web/api/v1"
)

const module = "github.com/prometheus/prometheus"

// newHandler builds Prometheus' API over the storage. Endpoints about scraping and Alertmanagers return empty answers;
// those that write or administer are disabled.
func newHandler(s *Server, o Options, queries parser.Parser, log *slog.Logger) http.Handler {
	started := time.Now()
	ready := func(h http.HandlerFunc) http.HandlerFunc { return h } // Open returns only when the storage is ready
	none := &absent{}
	api := v1.NewAPI(
		s.engine, s.db, nil, nil, s.db,
		func(context.Context) v1.ScrapePoolsRetriever { return none },
		func(context.Context) v1.TargetRetriever { return none },
		func(context.Context) v1.AlertmanagerRetriever { return none },
		func() config.Config { return config.DefaultConfig },
		map[string]string{}, v1.GlobalURLOptions{},
		ready, storageStats{s.db}, o.Dir,
		false /* administration */, false /* search */, 0, log,
		func(context.Context) v1.RulesRetriever { return s },
		0, 1, 1<<20, false /* agent */, regexp.MustCompile(`^$`), // no web page of another origin may query
		func() (v1.RuntimeInfo, error) {
			return v1.RuntimeInfo{StartTime: started, StorageRetention: o.Retention.String()}, nil
		},
		&v1.PrometheusVersion{Version: version()},
		func() []notifications.Notification { return nil },
		func() (<-chan notifications.Notification, func(), bool) { return nil, nil, false },
		client.NewRegistry(), nil, nil,
		false /* remote write */, nil, false /* OTLP */, false, false, false,
		lookback, false, false, nil, nil,
		v1.OpenAPIOptions{Version: version()}, queries,
	)
	router := route.New()
	api.Register(router.WithPrefix("/api/v1"))
	for path, state := range map[string]string{"/-/healthy": "Healthy", "/-/ready": "Ready"} {
		router.Get(path, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, "Prometheus Server is %s.\n", state)
		})
		router.Head(path, func(http.ResponseWriter, *http.Request) {})
	}
	return router
}

// OTLPHandler takes metrics that are pushed, as a Prometheus with --web.enable-otlp-receiver does. It is apart from Handler,
// so that not everybody who may query may also write.
func (s *Server) OTLPHandler() http.Handler {
	settings := config.DefaultConfig
	settings.OTLPConfig = config.DefaultOTLPConfig
	return remote.NewOTLPWriteHandler(s.log, client.NewRegistry(), s.db, func() config.Config { return settings },
		remote.OTLPOptions{LookbackDelta: lookback})
}

// version returns the version of the Prometheus module in this binary.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == module {
				return m.Version
			}
		}
	}
	return "unknown"
}

// storageStats adapts the storage to the interface that the API needs.
type storageStats struct{ *tsdb.DB }

func (s storageStats) BlockMetas() ([]tsdb.BlockMeta, error) { return s.DB.BlockMetas(), nil }

func (s storageStats) Stats(label string, limit int) (*tsdb.Stats, error) {
	return s.Head().Stats(label, limit), nil
}

func (s storageStats) WALReplayStatus() (tsdb.WALReplayStatus, error) {
	return tsdb.WALReplayStatus{}, nil
}

// absent stands in for the parts of a Prometheus that are missing here.
type absent struct{}

func (*absent) ScrapePools() []string                       { return []string{} }
func (*absent) TargetsActive() map[string][]*scrape.Target  { return nil }
func (*absent) TargetsDropped() map[string][]*scrape.Target { return nil }
func (*absent) TargetsDroppedCounts() map[string]int        { return nil }
func (*absent) Alertmanagers() []*url.URL                   { return nil }
func (*absent) DroppedAlertmanagers() []*url.URL            { return nil }

func (*absent) ScrapePoolConfig(pool string) (*config.ScrapeConfig, error) {
	return nil, fmt.Errorf("there is no scrape pool %q", pool)
}
