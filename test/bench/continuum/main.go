// Command continuum measures the loop of a continuum of many nodes in one run: the taxonomy, the collection, the
// decisions for one application and for many at once, with a real Postgres and a real Prometheus engine.
//
//	go run ./test/bench/continuum -nodes 50,500,5000,20000
//	go run ./test/bench/continuum -nodes 5000 -json
//	go run ./test/bench/continuum -nodes 5000 -query-timeout 5s -applications 0
//	go run ./test/bench/continuum -nodes 2000 -only ticking,draining -profile DIR
//
// Each function that grows with the continuum runs as its own process, with the memory setting of its Service, so that
// its processor time and its memory are its own. Submissions and drains run through all functions in this process, where
// each event is delivered at once. ../continuum.md has results.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/signal"
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
	flag.Parse()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what fails is returned
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *sizes, *asJSON, o); err != nil {
		fmt.Fprintln(os.Stderr, "continuum:", err)
		os.Exit(1) // everything was stopped by run
	}
}

// options are what may be varied alone.
type options struct {
	queryTimeout time.Duration
	applications int
	only         string
	rounds       int
	profile      string
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
	}
	if asJSON {
		return stats.JSON(r)
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

// print prints a row per figure and a column per size, and the exponent of growth between the second size (or the only
// other one) and the last: 1 is linear in nodes. With several sizes there is a last column: what that growth makes of
// extrapolated nodes, by calculation.
func (r report) print(w io.Writer) {
	head := []string{"", "unit"}
	for _, m := range r.Sizes {
		head = append(head, strconv.Itoa(m.Nodes))
	}
	rows := [][]string{append(head, "exponent", fmt.Sprintf("%d by calculation", extrapolated))}
	load := []string{"load of the machine", ""}
	for _, m := range r.Sizes {
		load = append(load, m.Load)
	}
	rows = append(rows, append(load, "", ""))
	for i, f := range r.Sizes[0].Figures {
		row := []string{f.Name, f.Unit}
		for _, m := range r.Sizes {
			row = append(row, fmt.Sprintf("%.1f", float64(m.Figures[i].Value)))
		}
		grows, there := r.growth(i)
		rows = append(rows, append(row, grows, there))
	}
	_, _ = fmt.Fprintln(w, r.Machine)
	stats.Table(w, rows)
}

// extrapolated is a size that no laptop has.
const extrapolated = 100_000

// growth returns the exponent, and the value at extrapolated nodes; empty if there is nothing to compare.
func (r report) growth(i int) (exponent, there string) {
	last := len(r.Sizes) - 1
	if last < 1 {
		return "", ""
	}
	from, to := r.Sizes[min(1, last-1)], r.Sizes[last]
	a, b := float64(from.Figures[i].Value), float64(to.Figures[i].Value)
	if !(a > 0) || !(b > 0) {
		return "", ""
	}
	e := math.Log(b/a) / math.Log(float64(to.Nodes)/float64(from.Nodes))
	return fmt.Sprintf("%.2f", e), fmt.Sprintf("%.0f", b*math.Pow(extrapolated/float64(to.Nodes), e))
}
