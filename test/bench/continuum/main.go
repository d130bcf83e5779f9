// Command continuum measures the loop of a continuum of many nodes in one run: the taxonomy, the collection, the
// decisions for one application and for many at once, with a real Postgres and a real Prometheus engine.
//
//	go run ./test/bench/continuum -nodes 50,500,5000,20000
//	go run ./test/bench/continuum -nodes 5000 -json
//	go run ./test/bench/continuum -nodes 5000 -query-timeout 5s -applications 0
//	go run ./test/bench/continuum -nodes 20000 -rounds 2 -applications 200 -with 5000.json
//	go run ./test/bench/continuum -nodes 2000 -only ticking,draining -profile DIR
//
// Each function that grows with the continuum runs as its own process, with the memory setting of its Service, so that
// its processor time and its memory are its own. Submissions and drains run through all functions in this process, where
// each event is delivered at once. ../continuum.md has results.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/littoral-project/littoral/test/bench/stats"
)

func main() {
	sizes := flag.String("nodes", "50,500,5000,20000", "numbers of nodes, each a continuum of its own")
	asJSON := flag.Bool("json", false, "print JSON")
	var o options
	flag.DurationVar(&o.queryTimeout, "query-timeout", time.Minute, "QUERY_TIMEOUT of all functions")
	flag.IntVar(&o.applications, "applications", 1000, "applications that are there while the rest is measured; 0 = not measured")
	flag.StringVar(&o.only, "only", strings.Join(parts(), ","), "parts to measure")
	flag.IntVar(&o.rounds, "rounds", 5, "how often what is repeated is measured")
	flag.StringVar(&o.profile, "profile", "", "directory for processor profiles of a tick with 1 % changed and of a drain, of this process")
	flag.StringVar(&o.with, "with", "", "files with what -json printed in former runs, to compare with")
	flag.Parse()
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(most) // what is left of 12 GiB is for Postgres and the functions
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what fails is returned
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *sizes, *asJSON, o); err != nil {
		fmt.Fprintln(os.Stderr, "continuum:", err)
		os.Exit(1) // everything was stopped by run
	}
}

// most is what the telemetry of all nodes, the fleet and the functions in this process should take, in bytes.
const most = 9 << 30

// options are what may be varied alone.
type options struct {
	queryTimeout time.Duration
	applications int
	only         string
	rounds       int
	profile      string
	with         string
}

func (o options) check() error {
	if o.rounds < 1 {
		return fmt.Errorf("-rounds: %d is less than one", o.rounds)
	}
	for part := range strings.SplitSeq(o.only, ",") {
		if !slices.Contains(parts(), part) {
			return fmt.Errorf("-only: %q is none of %s", part, strings.Join(parts(), ", "))
		}
	}
	return nil
}

func run(ctx context.Context, sizes string, asJSON bool, o options) error {
	if err := o.check(); err != nil {
		return err
	}
	w, err := newWorld(ctx, o)
	if err != nil {
		return err
	}
	defer w.close()
	r := report{Machine: stats.Machine()}
	for text := range strings.SplitSeq(sizes, ",") {
		nodes, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || nodes < 1 {
			return fmt.Errorf("-nodes: %q is no number of nodes", text)
		}
		fmt.Fprintf(os.Stderr, "continuum: %d nodes ...\n", nodes)
		m, err := w.measure(ctx, nodes)
		if err != nil {
			for _, f := range m.Figures { // what was measured before is no less true
				fmt.Fprintf(os.Stderr, "%s: %.1f %s\n", f.Name, float64(f.Value), f.Unit)
			}
			return fmt.Errorf("%d nodes: %w", nodes, err)
		}
		r.Sizes = append(r.Sizes, m)
		debug.FreeOSMemory() // of the telemetry of this size
	}
	if asJSON {
		return stats.JSON(r)
	}
	if err := r.read(o.with); err != nil {
		return err
	}
	r.print(os.Stdout)
	return nil
}

type report struct {
	Machine string `json:"machine"`
	Sizes   []size `json:"sizes"`
}

// size is what was measured with one number of nodes. Times and processor times are in milliseconds.
type size struct {
	Nodes   int      `json:"nodes"`
	Load    string   `json:"load"` // of the machine when it was done
	Figures []figure `json:"figures"`
}

type figure struct {
	Name  string       `json:"name"`
	Unit  string       `json:"unit"`
	Value stats.Number `json:"value"`
}

func (m *size) add(name, unit string, value float64) {
	m.Figures = append(m.Figures, figure{name, unit, stats.Number(value)})
}

// print prints a row per figure and a column per size, and the exponent of growth between from and the last size: 1 is
// linear in nodes. With several sizes there is a last column: what that growth makes of extrapolated nodes, by calculation.
func (r report) print(w io.Writer) {
	head := []string{"", "unit"}
	for _, m := range r.Sizes {
		head = append(head, strconv.Itoa(m.Nodes))
	}
	rows := [][]string{append(head, "exponent", fmt.Sprintf("%d by calculation", extrapolated))}
	load := []string{"load of the machine", ""}
	var names, units []string
	for _, m := range r.Sizes {
		load = append(load, m.Load)
		for _, f := range m.Figures {
			if !slices.Contains(names, f.Name) {
				names, units = append(names, f.Name), append(units, f.Unit)
			}
		}
	}
	rows = append(rows, append(load, "", ""))
	for i, name := range names {
		row := []string{name, units[i]}
		for _, m := range r.Sizes {
			text := ""
			if v := m.value(name); !math.IsNaN(v) {
				text = fmt.Sprintf("%.1f", v)
			}
			row = append(row, text)
		}
		grows, there := r.growth(name)
		rows = append(rows, append(row, grows, there))
	}
	_, _ = fmt.Fprintln(w, r.Machine)
	stats.Table(w, rows)
}

// value is not a number if it was not measured.
func (m *size) value(name string) float64 {
	for _, f := range m.Figures {
		if f.Name == name {
			return float64(f.Value)
		}
	}
	return math.NaN()
}

const (
	extrapolated = 100_000 // a size that no laptop has
	fewest       = 500     // from which growth is counted, where that is possible: below, what is the same for any size counts most
)

// growth returns the exponent, and the value at extrapolated nodes; empty if there is nothing to compare.
func (r report) growth(name string) (exponent, there string) {
	last := len(r.Sizes) - 1
	if last < 1 {
		return "", ""
	}
	from, to := r.Sizes[0], r.Sizes[last]
	for _, m := range r.Sizes[:last] {
		if m.Nodes >= fewest {
			from = m
			break
		}
	}
	a, b := from.value(name), to.value(name)
	if !(a > 0) || !(b > 0) || from.Nodes == to.Nodes {
		return "", ""
	}
	e := math.Log(b/a) / math.Log(float64(to.Nodes)/float64(from.Nodes))
	return fmt.Sprintf("%.2f", e), fmt.Sprintf("%.0f", b*math.Pow(extrapolated/float64(to.Nodes), e))
}

// read adds what former runs have measured, as they printed it with -json, and sorts all by size.
func (r *report) read(files string) error {
	for file := range strings.SplitSeq(files, ",") {
		if file == "" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var former report
		if err := json.Unmarshal(text, &former); err != nil {
			return fmt.Errorf("-with: %s: %w", file, err)
		}
		r.Sizes = append(r.Sizes, former.Sizes...)
	}
	slices.SortStableFunc(r.Sizes, func(a, b size) int { return cmp.Compare(a.Nodes, b.Nodes) })
	return nil
}
