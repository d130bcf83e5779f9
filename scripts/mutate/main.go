// Command mutate says how much of a package its tests notice. It changes one thing at a time, such as < into <= or a call into none,
// runs the tests that reach it, and prints the changes that none of them noticed. A package has thousands of places, so it takes a sample
// of them. What const declares stays as it is.
//
//	go run ./scripts/with-postgres -- go run ./scripts/mutate -sample 60 -seed 1 -tests ./test/contracts ./shared/job
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	sample := flag.Int("sample", 60, "how many changes to try of each package")
	seed := flag.Uint64("seed", 1, "of the sample")
	tests := flag.String("tests", "", "packages whose tests run after its own, separated by commas")
	workers := flag.Int("workers", 2, "how many changes to try at a time")
	longest := flag.Duration("longest", 2*time.Minute, "how long the tests for one change may take, which run from the quickest on")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: mutate [flags] PACKAGE...")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for _, pkg := range flag.Args() {
		r := run{pkg: pkg, workers: *workers, longest: *longest, tested: []string{pkg}, out: os.Stdout}
		if *tests != "" {
			r.tested = append(r.tested, strings.Split(*tests, ",")...)
		}
		if err := r.sample(ctx, *sample, rand.New(rand.NewPCG(*seed, 0))); err != nil {
			fmt.Fprintf(os.Stderr, "mutate %s: %v\n", pkg, err)
			os.Exit(1)
		}
	}
}

// run is that of one package.
type run struct {
	pkg     string
	tested  []string // packages with tests, its own first
	workers int
	longest time.Duration
	out     io.Writer

	lock                          sync.Mutex
	noticed, unnoticed, unreached int
}

// sample tries so many changes, at random places.
func (r *run) sample(ctx context.Context, most int, random *rand.Rand) error {
	all, err := changesOf(ctx, r.pkg)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	chosen := random.Perm(len(all))[:min(most, len(all))]
	slices.Sort(chosen) // as they stand in the files
	var changes []change
	for _, i := range chosen {
		all[i].number = len(changes) + 1
		changes = append(changes, all[i])
	}
	begin := time.Now()
	changes, binaries, err := build(ctx, dir, r.pkg, r.tested, changes)
	if err != nil {
		return err
	}
	tests, err := r.reach(ctx, dir, binaries)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.out, "%s: %d tests, built and run in %s\n", r.pkg, len(tests), time.Since(begin).Round(time.Second))
	var g errgroup.Group
	g.SetLimit(r.workers)
	for _, c := range changes {
		g.Go(func() error { return r.try(ctx, c, tests) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	tried := r.noticed + r.unnoticed + r.unreached
	fmt.Fprintf(r.out, "%s: %d of %d changes noticed (%.0f %%), %d unnoticed, %d never reached; of %d places, in %s\n", r.pkg,
		r.noticed, tried, 100*float64(r.noticed)/float64(max(tried, 1)), r.unnoticed, r.unreached, len(all), time.Since(begin).Round(time.Second))
	return nil
}

// try runs the tests that reach the change, as many as there is time for.
func (r *run) try(ctx context.Context, c change, all []test) error {
	var reaching []test
	var spent time.Duration
	for _, t := range all {
		if t.reaches[c.number] && (len(reaching) == 0 || spent+t.took <= r.longest) {
			reaching, spent = append(reaching, t), spent+t.took
		}
	}
	noticed, err := notice(ctx, c.number, reaching)
	if err != nil {
		return err
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	switch {
	case noticed:
		r.noticed++
	case len(reaching) == 0:
		r.unreached++
		fmt.Fprintf(r.out, "%s: %s: never reached\n", c.position(), c.what)
	default:
		r.unnoticed++
		fmt.Fprintf(r.out, "%s: %s: not noticed by %d tests\n", c.position(), c.what, len(reaching))
	}
	return nil
}
