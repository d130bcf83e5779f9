// Command continuum measures the loop of a continuum of many nodes in one run: the taxonomy, the collection, the
// decisions for one application and for many at once, with a real Postgres and a real Prometheus engine.
//
//	go run ./test/bench/continuum -nodes 50,500,5000,20000
//	go run ./test/bench/continuum -nodes 5000 -json
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
	"strconv"
	"strings"
	"syscall"

	"github.com/littoral-project/littoral/test/bench/stats"
)

func main() {
	sizes := flag.String("nodes", "50,500,5000,20000", "numbers of nodes, each a continuum of its own")
	asJSON := flag.Bool("json", false, "print JSON")
	flag.Parse()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what fails is returned
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *sizes, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "continuum:", err)
		os.Exit(1) //nolint:gocritic // everything was stopped by run
	}
}

func run(ctx context.Context, sizes string, asJSON bool) error {
	w, err := newWorld(ctx)
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
// other one) and the last: 1 is linear in nodes.
func (r report) print(w io.Writer) {
	head := []string{"", "unit"}
	for _, m := range r.Sizes {
		head = append(head, strconv.Itoa(m.Nodes))
	}
	rows := [][]string{append(head, "exponent")}
	load := []string{"load of the machine", ""}
	for _, m := range r.Sizes {
		load = append(load, m.Load)
	}
	rows = append(rows, append(load, ""))
	for i, f := range r.Sizes[0].Figures {
		row := []string{f.Name, f.Unit}
		for _, m := range r.Sizes {
			row = append(row, fmt.Sprintf("%.1f", float64(m.Figures[i].Value)))
		}
		rows = append(rows, append(row, r.exponent(i)))
	}
	_, _ = fmt.Fprintln(w, r.Machine)
	stats.Table(w, rows)
}

func (r report) exponent(i int) string {
	last := len(r.Sizes) - 1
	if last < 1 {
		return ""
	}
	from, to := r.Sizes[min(1, last-1)], r.Sizes[last]
	a, b := float64(from.Figures[i].Value), float64(to.Figures[i].Value)
	if !(a > 0) || !(b > 0) {
		return ""
	}
	return fmt.Sprintf("%.2f", math.Log(b/a)/math.Log(float64(to.Nodes)/float64(from.Nodes)))
}
