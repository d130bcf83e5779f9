// Command forecast compares every kind of model with the two naive ones on real series:
//
//	go run ./test/bench/forecast [-json] [-horizon 12] [-lags 12] [-step 5m] [-seed 1] FILE.csv...
//
// With -graph the files are the nodes of one graph, all linked to each other, and with -world the nodes of a made-up one, whose cpu and
// memory are foreseen over its links; errors are in standard deviations there.
//
// A file has the columns timestamp and value. Each series is split by time: the first half trains, the next fifth
// measures the intervals, the rest is what the errors are of. "published" is the kind a server would publish.
package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/littoral-project/littoral/shared/forecast"
)

type row struct {
	File      string   `json:"file"`
	Kind      string   `json:"kind"`
	MAE       *float64 `json:"mae,omitempty"`
	MSE       *float64 `json:"mse,omitempty"`
	Coverage  *float64 `json:"coverage,omitempty"`
	OfLast    *float64 `json:"ofLastValue,omitempty"` // MAE as a share of that of the last value
	OfDay     *float64 `json:"ofYesterday,omitempty"`
	Published bool     `json:"published"`
	Seconds   float64  `json:"seconds,omitempty"` // for training, measuring and judging
	Error     string   `json:"error,omitempty"`
}

func main() {
	asJSON := flag.Bool("json", false, "print JSON")
	probability := flag.Float64("probability", 0.95, "of the intervals")
	step := flag.Duration("step", 5*time.Minute, "distance between values")
	var o forecast.Options
	flag.IntVar(&o.Horizon, "horizon", 12, "steps ahead")
	flag.IntVar(&o.Lags, "lags", 12, "past values a model of lags sees")
	flag.Uint64Var(&o.Seed, "seed", 1, "of everything random")
	graph := flag.Bool("graph", false, "take the files as one graph")
	made := flag.String("world", "", "a generated world, such as nodes=12,clusters=2,seed=7")
	days := flag.Int("days", 7, "of the generated world")
	flag.Parse()
	if flag.NArg() == 0 && *made == "" {
		fmt.Fprintln(os.Stderr, "usage: forecast [-json] FILE.csv...")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	rows, err := graphs(ctx, *graph, *made, *days, *step, o, *probability)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) // nothing is left to stop
	}
	for _, file := range flag.Args() {
		if *graph {
			break
		}
		list, err := compare(ctx, file, *step, o, *probability)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
			os.Exit(1) // nothing is left to stop
		}
		rows = append(rows, list...)
	}
	if err := show(os.Stdout, rows, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func compare(ctx context.Context, file string, step time.Duration, o forecast.Options, probability float64) ([]row, error) {
	points, err := read(file)
	if err != nil {
		return nil, err
	}
	s, err := forecast.Regular(points, step)
	if err != nil {
		return nil, err
	}
	verdicts, err := forecast.Compare(ctx, s, o, probability, forecast.Kinds...)
	if err != nil {
		return nil, err
	}
	return table(strings.TrimSuffix(filepath.Base(file), ".csv"), verdicts), nil
}

// table has a row for each kind.
func table(name string, verdicts []forecast.Verdict) []row {
	naive := map[string]float64{}
	for _, v := range verdicts {
		if v.Err == nil && forecast.IsNaive(v.Kind) {
			naive[v.Kind] = v.Test.MAE
		}
	}
	best := forecast.Best(verdicts)
	var rows []row
	for i, v := range verdicts {
		r := row{File: name, Kind: v.Kind, Published: best == &verdicts[i]}
		if v.Err != nil {
			r.Error = v.Err.Error()
		} else {
			r.MAE, r.MSE, r.Coverage = &v.Test.MAE, &v.Test.MSE, &v.Test.Coverage
			r.OfLast, r.OfDay = share(v.Test.MAE, naive, "last-value"), share(v.Test.MAE, naive, "yesterday")
		}
		rows = append(rows, r)
	}
	return rows
}

// share is nil where there is nothing to compare with.
func share(mae float64, naive map[string]float64, kind string) *float64 {
	ratio := mae / naive[kind]
	if math.IsNaN(ratio) || math.IsInf(ratio, 0) {
		return nil
	}
	return &ratio
}

func read(file string) ([]forecast.Point, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := csv.NewReader(f)
	lines.FieldsPerRecord = 2
	var points []forecast.Point
	for {
		fields, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return points, nil
		}
		if err != nil {
			return nil, err
		}
		if fields[0] == "timestamp" {
			continue
		}
		line, _ := lines.FieldPos(0)
		at, err := time.Parse(time.DateTime, fields[0])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		value, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		points = append(points, forecast.Point{At: at, Value: value})
	}
}

func show(w io.Writer, rows []row, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(rows)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SERIES\tKIND\tMAE\tMSE\tCOVERAGE\tOF LAST\tOF YESTERDAY\tSECONDS\tPUBLISHED")
	number := func(v *float64, format string) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprintf(format, *v)
	}
	for _, r := range rows {
		published := ""
		if r.Published {
			published = "yes"
		}
		if r.Error != "" {
			fmt.Fprintf(t, "%s\t%s\t%s\n", r.File, r.Kind, r.Error)
			continue
		}
		seconds := "-" // only of graphs
		if r.Seconds > 0 {
			seconds = fmt.Sprintf("%.1f", r.Seconds)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.File, r.Kind, number(r.MAE, "%.4g"), number(r.MSE, "%.4g"),
			number(r.Coverage, "%.3f"), number(r.OfLast, "%.2f"), number(r.OfDay, "%.2f"), seconds, published)
	}
	return t.Flush()
}
