// Command bench measures Littoral against its budgets and prints ratios within one run, since absolute times on a
// shared machine mean little:
//
//	go run ./test/bench                # everything
//	go run ./test/bench cold           # process start to first answer, of every function
//	go run ./test/bench jobs           # durable job transactions against raw pgbench
//	go run ./test/bench poll           # an agent's poll over ever more finished jobs
//	go run ./test/bench chain          # submit to Available, split by function
//	go run ./test/bench laptop         # the same on the laptop host
//	go run ./test/bench webhook        # webhook to the new target, on the laptop host
//	go run ./test/bench stages         # from a metric that crosses its threshold to Available elsewhere
//	go run ./test/bench gone           # from a node that is drained or silent, or a device that goes, to Available elsewhere
//	go run ./test/bench policies       # rendering and judging with ten thousand policies
//	go run ./test/bench backtest       # a day at 15 s for a hundred policies
//	go run ./test/bench -json poll     # for a program to read
//	go run ./test/bench -only 'policymanager-.*' cold
//
// It starts what it needs: a durable Postgres, an OpenID Connect issuer, a Prometheus with the telemetry of the default
// fleet. Nothing here is a test: no number fails the build.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/littoral-project/littoral/test/bench/stats"
)

// result is the result of a part: marshalled for programs, printed for people.
type result interface {
	print(w io.Writer)
}

type part struct {
	name string
	run  func(context.Context, *world) (result, error)
}

var parts = []part{
	{"cold", runCold},
	{"jobs", runJobs},
	{"reactions", runReactions},
	{"poll", runPoll},
	{"chain", runChain},
	{"laptop", runLaptop},
	{"webhook", runWebhook},
	{"stages", runStages},
	{"gone", runGone},
	{"policies", runPolicies},
	{"backtest", runBacktest},
}

var (
	rounds = flag.Int("rounds", 0, "repeat a part's measurement this often; 0 = its own default")
	only   = flag.String("only", ".*", "cold: start these functions only, a regular expression that the whole name matches")
)

func main() {
	asJSON := flag.Bool("json", false, "print JSON")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: bench [-json] [-rounds N] [-only NAMES] [cold] [jobs] [reactions] [poll] [chain] [laptop] "+
			"[webhook] [stages] [gone] [policies] [backtest]")
		flag.PrintDefaults()
	}
	flag.Parse()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // a part that fails reports it itself
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, flag.Args(), *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) // everything was stopped by run
	}
}

func run(ctx context.Context, names []string, asJSON bool) error {
	chosen, err := choose(names)
	if err != nil {
		return err
	}
	w, err := newWorld(ctx)
	if err != nil {
		return err
	}
	defer w.close()
	results := map[string]any{"machine": stats.Machine()}
	if !asJSON {
		fmt.Printf("%s\n", stats.Machine())
	}
	for _, p := range chosen {
		fmt.Fprintf(os.Stderr, "bench: %s ...\n", p.name)
		r, err := p.run(ctx, w)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if asJSON {
			results[p.name] = r
			continue
		}
		fmt.Printf("\n== %s ==\n\n", p.name)
		r.print(os.Stdout)
	}
	if asJSON {
		return stats.JSON(results)
	}
	return nil
}

func choose(names []string) ([]part, error) {
	if len(names) == 0 {
		return parts, nil
	}
	var chosen []part
	for _, name := range names {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no part %q", name)
		}
		chosen = append(chosen, parts[i])
	}
	return chosen, nil
}

// times returns the -rounds flag, or the default of a part.
func times(usual int) int {
	if *rounds > 0 {
		return *rounds
	}
	return usual
}

// say formats a number with two decimals.
func say(f float64) string { return fmt.Sprintf("%.2f", f) }
