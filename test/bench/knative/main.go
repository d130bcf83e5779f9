// Command knative measures what sleeping costs on a cluster where Littoral is deployed, compared with a bare hello that
// sleeps there too:
//
//	go run ./test/bench/knative                 # everything
//	go run ./test/bench/knative http chain      # these parts: images, http, chain, wave, pool
//	go run ./test/bench/knative -json -rounds 10 http
//
// It needs KUBECONFIG, kubectl, ko ("make ko") with KO_DOCKER_REPO, a route to the cluster's Services, and an overlay
// with the trial issuer (infra/issuer). It removes what it creates. Nothing here is a test: no number fails the build.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/littoral-project/littoral/test/bench/stats"
	"github.com/littoral-project/littoral/test/deployed"
)

var (
	asJSON = flag.Bool("json", false, "print JSON")
	rounds = flag.Int("rounds", 5, "repeat http, chain and wave this often")
	only   = flag.String("only", ".*", "http: these functions only, a regular expression that the whole name matches")
	hellos = flag.Int("hellos", 5, "deploy this many copies of hello; wave wakes them at once to compare where they are as many")
	many   = flag.Int("together", 25, "wave: wake this many functions at once")
	procs  = flag.Int("instances", 300, "pool: run this many instances at once")
	direct = flag.Bool("direct", false, "pool: once more without PgBouncer, which takes all connections of the cluster's Postgres")
	taken  = flag.String("cluster", "cluster1/lab", "chain: CLUSTER/NODE where the application is to run")
)

// result is the result of a part: marshalled for programs, printed for people.
type result interface {
	rows() [][]string // the first is the head
	notes() []string
}

type part struct {
	name string
	run  func(context.Context, *bench) (result, error)
}

var parts = []part{{"images", runImages}, {"http", runHTTP}, {"chain", runChain}, {"wave", runWave}, {"pool", runPool}}

// bench is what all parts share.
type bench struct {
	*deployed.Littoral

	pods   *pods
	hellos []target
}

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "knative:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string) (err error) {
	for _, name := range names {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			return fmt.Errorf("there is no part %q", name)
		}
	}
	b := &bench{}
	if b.Littoral, err = deployed.Open(); err != nil {
		return err
	}
	if b.pods, err = watchPods(ctx); err != nil {
		return err
	}
	defer b.pods.stop()
	defer func() { err = errors.Join(err, b.removeHellos()) }()
	results := map[string]any{"machine": stats.Machine()}
	if !*asJSON {
		fmt.Println(stats.Machine())
	}
	for _, p := range parts {
		if len(names) > 0 && !slices.Contains(names, p.name) {
			continue
		}
		say("%s ...", p.name)
		before := stats.Load()
		r, err := p.run(ctx, b)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		results[p.name] = r
		if !*asJSON {
			fmt.Printf("\n== %s (load %s before, %s after) ==\n\n", p.name, before, stats.Load())
			print(os.Stdout, r)
		}
	}
	if *asJSON {
		return stats.JSON(results)
	}
	return nil
}

func print(w io.Writer, r result) {
	stats.Table(w, r.rows())
	_, _ = fmt.Fprintln(w)
	for _, note := range r.notes() {
		_, _ = fmt.Fprintln(w, note)
	}
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "knative: "+format+"\n", args...) }

func ms(f float64) string    { return fmt.Sprintf("%.0f", f) }
func ratio(f float64) string { return fmt.Sprintf("%.2f", f) }

func verdict(holds bool) string {
	if holds {
		return "met"
	}
	return "missed"
}
