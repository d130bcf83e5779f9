// Command day shows what forecasts are worth: applications run for a day in a world that is made up, once placed by what is measured
// and once by what is foreseen as well, with everything else equal:
//
//	go run ./test/bench/day [-json] [-nodes 24] [-applications 12] [-seeds 1,2,3]
//
// Seven days before it train the forecasts of each node's cpu and of each link's traffic; the kind with the least error on days held
// back is used, and where no model beats the naive kinds, the better one of these. Placement is the one of shared/placement, over the
// links. What is placed runs five minutes later, in both cases.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"text/tabwriter"
)

func main() {
	asJSON := flag.Bool("json", false, "print JSON")
	var o options
	flag.IntVar(&o.Nodes, "nodes", 24, "how many")
	flag.IntVar(&o.Applications, "applications", 12, "how many")
	flag.IntVar(&o.Steps, "steps", 288, "of five minutes")
	seeds := flag.String("seeds", "1,2,3", "of the worlds")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, o, *seeds, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) // nothing is left to stop
	}
}

func run(ctx context.Context, to io.Writer, o options, seeds string, asJSON bool) error {
	var all []outcome
	for text := range strings.SplitSeq(seeds, ",") {
		seed, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			return fmt.Errorf("-seeds: %w", err)
		}
		o.Seed = seed
		w, err := prepare(ctx, o)
		if err != nil {
			return err
		}
		for _, foreseeing := range []bool{false, true} {
			one, err := w.live(ctx, foreseeing)
			if err != nil {
				return err
			}
			all = append(all, one)
		}
	}
	all = append(all, sum(all, false), sum(all, true))
	if asJSON {
		enc := json.NewEncoder(to)
		enc.SetIndent("", "  ")
		return enc.Encode(all)
	}
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SEED\tFORECASTS\tFULL\tLINKS\tDOWN\tVIOLATIONS\tMOVES\tPLANS\tKWH")
	for _, r := range all {
		seed, forecasts := strconv.FormatUint(r.Seed, 10), "off"
		if r.Seed == 0 {
			seed = "all"
		}
		if r.Forecasts {
			forecasts = "on"
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%.2f\n", seed, forecasts, r.Full, r.Links, r.Down, r.Violations(), r.Moves, r.Plans, r.KWh)
	}
	return t.Flush()
}

// sum is that of all seeds, as seed 0.
func sum(all []outcome, forecasts bool) outcome {
	s := outcome{Forecasts: forecasts}
	for _, r := range all {
		if r.Forecasts == forecasts && r.Seed != 0 {
			s.Full, s.Links, s.Down, s.Moves, s.Plans, s.KWh = s.Full+r.Full, s.Links+r.Links, s.Down+r.Down, s.Moves+r.Moves, s.Plans+r.Plans, s.KWh+r.KWh
		}
	}
	return s
}
