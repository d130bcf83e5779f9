package main

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/littoral-project/littoral/infra/agents/agent"
	"github.com/littoral-project/littoral/shared/otlp"
)

// lpm is the configuration of L2S-M's performance measurement. Intervals are in seconds; 0 is never.
type lpm struct {
	Node       string      `json:"Nodename"`
	Neighbours []neighbour `json:"MetricsNeighbourNodes"`
}

type neighbour struct {
	Name       string  `json:"name"`
	IP         string  `json:"ip"`
	Jitter     seconds `json:"jitterInterval"`
	Throughput seconds `json:"throughputInterval"`
	RTT        seconds `json:"rttInterval"`
}

type seconds float64

func (s seconds) duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// figures are what is known of the way to a neighbour; nil is not measured.
type figures struct {
	Source          string   `json:"source"`
	Target          string   `json:"target"`
	RTT             *float64 `json:"rttMs,omitempty"`
	Jitter          *float64 `json:"jitterMs,omitempty"`
	Loss            *float64 `json:"lossPercent,omitempty"`
	Throughput      *float64 `json:"throughputKbps,omitempty"`
	Bandwidth       *float64 `json:"bandwidthKbps,omitempty"`
	Retransmissions *float64 `json:"retransmissionsPercent,omitempty"`
	Error           string   `json:"error,omitempty"`
}

// probe measures and keeps the last figures of each neighbour.
type probe struct {
	o      options
	config lpm
	log    *slog.Logger
	client *http.Client
	heavy  chan struct{} // held by who measures throughput, on either side
	trains *trains

	mu     sync.Mutex
	known  map[string]*figures
	window map[string]*window // of echoes, by neighbour
	spent  int64              // bytes in the hour that began at since
	since  time.Time
}

func newProbe(o options, log *slog.Logger) (*probe, error) {
	p := &probe{
		o: o, log: log, client: &http.Client{Timeout: 10 * time.Second}, heavy: make(chan struct{}, 1), trains: newTrains(),
		known: map[string]*figures{}, window: map[string]*window{},
	}
	if o.Config != "" {
		text, err := os.ReadFile(o.Config)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &p.config); err != nil {
			return nil, fmt.Errorf("%s: %w", o.Config, err)
		}
	}
	if o.Node != "" {
		p.config.Node = o.Node
	}
	if p.config.Node == "" {
		return nil, errors.New("the node has no name: set Nodename in the file, or --node")
	}
	if o.Echoes < 2 || o.Train < 2 || o.Train > 10_000 || o.TCPBytes < 1 {
		return nil, errors.New("at least two echoes and a byte are needed, and a train of 2 to 10000 packets")
	}
	for i, n := range p.config.Neighbours {
		if n.Name == "" || n.IP == "" || n.Jitter < 0 || n.Throughput < 0 || n.RTT < 0 {
			return nil, fmt.Errorf("MetricsNeighbourNodes[%d] needs a name, an ip and intervals of at least 0", i)
		}
	}
	return p, nil
}

// schedule measures every neighbour at its intervals. The first time is spread by the names of both, so that nodes that start
// together do not measure together.
func (p *probe) schedule(ctx context.Context) {
	for _, n := range p.config.Neighbours {
		light := n.RTT.duration()
		if j := n.Jitter.duration(); light == 0 || j > 0 && j < light {
			light = j // one exchange gives both
		}
		go p.repeat(ctx, n, light, p.echo)
		go p.repeat(ctx, n, n.Throughput.duration(), p.load)
	}
}

func (p *probe) repeat(ctx context.Context, n neighbour, every time.Duration, measure func(context.Context, neighbour) error) {
	if every <= 0 {
		return
	}
	h := fnv.New32a()
	_, _ = io.WriteString(h, p.config.Node+"\x00"+n.Name) // a hash takes everything
	next := time.NewTimer(time.Duration(float64(h.Sum32()) / (1 << 32) * float64(min(every, time.Minute))))
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		if err := measure(ctx, n); err != nil && ctx.Err() == nil {
			p.log.Warn("not measured", "neighbour", n.Name, "error", err.Error())
		}
		next.Reset(every)
	}
}

// of returns the figures of a neighbour to change them; the caller holds mu.
func (p *probe) of(name string) *figures {
	if p.known[name] == nil {
		p.known[name] = &figures{Source: p.config.Node, Target: name}
	}
	return p.known[name]
}

var errBudget = errors.New("the budget of bytes of this hour is spent")

// spend takes bytes of the budget.
func (p *probe) spend(bytes int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.since) >= time.Hour {
		p.since, p.spent = now, 0
	}
	if p.spent+bytes > p.o.Budget {
		return errBudget
	}
	p.spent += bytes
	return nil
}

// samples are the present figures as metrics.
func (p *probe) samples() []otlp.Sample {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []otlp.Sample
	for _, f := range p.known {
		for _, m := range []struct {
			name, help, former string
			value              *float64
		}{
			{"net_rtt_ms", "round trip", "net_rtt_", f.RTT},
			{"net_jitter_ms", "standard deviation of the round trip", "net_jitter_", f.Jitter},
			{"net_loss_percent", "packets without an answer", "", f.Loss},
			{"net_throughput_kbps", "what one TCP connection gets", "net_throughput_", f.Throughput},
			{"net_bandwidth_kbps", "what the way carries", "", f.Bandwidth},
			{"net_retransmissions_percent", "segments that were sent again", "", f.Retransmissions},
		} {
			if m.value == nil {
				continue
			}
			out = append(out, otlp.Sample{
				Name: m.name, Help: m.help, Value: *m.value, Labels: map[string]string{"source_node": f.Source, "target_node": f.Target},
			})
			if p.o.Legacy && m.former != "" {
				out = append(out, otlp.Sample{Name: m.former + legal(f.Source) + ":" + legal(f.Target), Help: m.help, Value: *m.value})
			}
		}
	}
	return append(out, otlp.Sample{Name: "probe_sent_bytes_this_hour", Help: "of the budget", Value: float64(p.spent)})
}

// legal replaces what the name of a metric may not have.
func legal(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, name)
}

func (p *probe) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(otlp.Text(p.samples()))
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("POST /measure/{neighbour}", p.onDemand)
	return mux
}

// onDemand measures the way to a neighbour of the file now; ?what=rtt or throughput, or both without it.
func (p *probe) onDemand(w http.ResponseWriter, r *http.Request) {
	if !p.permitted(r) {
		http.Error(w, "the token is not the one of --token-file", http.StatusUnauthorized)
		return
	}
	for _, n := range p.config.Neighbours {
		if n.Name != r.PathValue("neighbour") {
			continue
		}
		f := p.measure(r.Context(), n, r.URL.Query().Get("what"))
		w.Header().Set("Content-Type", "application/json")
		if f.Error != "" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(f)
		return
	}
	http.Error(w, "there is no such neighbour", http.StatusNotFound)
}

func (p *probe) permitted(r *http.Request) bool {
	if p.o.Token == "" {
		return true
	}
	token, err := os.ReadFile(p.o.Token)
	given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return err == nil && bearer && subtle.ConstantTimeCompare([]byte(given), []byte(strings.TrimSpace(string(token)))) == 1
}

// measure measures now and returns all that is known.
func (p *probe) measure(ctx context.Context, n neighbour, what string) figures {
	var err error
	if what == "" || what == "rtt" {
		err = p.echo(ctx, n)
	}
	if what == "" || what == "throughput" {
		err = errors.Join(err, p.load(ctx, n))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f := *p.of(n.Name)
	if err != nil {
		f.Error = err.Error()
	}
	return f
}

// print measures every neighbour once.
func (p *probe) print(ctx context.Context, out io.Writer) error {
	for _, n := range p.config.Neighbours {
		if err := json.NewEncoder(out).Encode(p.measure(ctx, n, "")); err != nil {
			return err
		}
	}
	return nil
}

// pushing sends all figures each interval.
func (p *probe) pushing(ctx context.Context) {
	every := time.NewTicker(p.o.Every)
	defer every.Stop()
	for {
		if err := p.push(ctx); err != nil && ctx.Err() == nil {
			p.log.Warn("figures could not be pushed", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

func (p *probe) push(ctx context.Context) error {
	to := agent.Receiver{URL: p.o.OTLP, TokenFile: p.o.OTLPToken, Client: p.client}
	return to.Push(ctx, "probe", p.config.Node, p.samples())
}
