// Command mutate says how much of a package its tests notice. It changes one thing at a time, such as < into <= or a call into none,
// runs the tests, and prints the changes that none of them noticed. A package has thousands of places, so it takes a sample of them.
//
//	go run ./scripts/with-postgres -- go run ./scripts/mutate -sample 60 -seed 1 ./shared/job ./shared/application
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	sample := flag.Int("sample", 60, "how many changes to try of each package")
	seed := flag.Uint64("seed", 1, "of the sample")
	tests := flag.String("tests", "", "packages whose tests run after its own, separated by commas")
	longest := flag.Duration("timeout", 5*time.Minute, "of the tests for one change; what takes longer is noticed")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: mutate [flags] PACKAGE...")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for _, pkg := range flag.Args() {
		r := run{pkg: pkg, tests: []string{pkg}, longest: *longest}
		if *tests != "" {
			r.tests = append(r.tests, strings.Split(*tests, ",")...)
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
	tests   []string
	longest time.Duration

	noticed, unnoticed int
}

// sample tries so many changes that compile, at random places.
func (r *run) sample(ctx context.Context, most int, random *rand.Rand) error {
	dir, err := folder(ctx, r.pkg)
	if err != nil {
		return err
	}
	changes, err := changesOf(dir)
	if err != nil {
		return err
	}
	if result, out, err := r.test(ctx, nil); err != nil || result != passed {
		return errors.Join(err, fmt.Errorf("the tests fail before anything is changed:\n%s", out))
	}
	random.Shuffle(len(changes), func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
	begin := time.Now()
	for _, c := range changes {
		if r.noticed+r.unnoticed == most {
			break
		}
		result, _, err := r.test(ctx, &c)
		if err != nil {
			return err
		}
		switch result {
		case failed:
			r.noticed++
		case passed:
			r.unnoticed++
			fmt.Printf("%s: %s: not noticed\n", c.position(dir), c.what)
		case broken: // it does not compile
		}
	}
	fmt.Printf("%s: %d of %d changes noticed (%.0f %%), of %d places, in %s\n", r.pkg, r.noticed, r.noticed+r.unnoticed,
		100*float64(r.noticed)/float64(max(r.noticed+r.unnoticed, 1)), len(changes), time.Since(begin).Round(time.Second))
	return nil
}

func folder(ctx context.Context, pkg string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", pkg).Output()
	return strings.TrimSpace(string(out)), err
}

type outcome int

const (
	passed outcome = iota
	failed
	broken
)

// test runs the tests with the change, one package after the other until one notices it. Go reads the change in place of the file, so
// that it never is in the tree.
func (r *run) test(ctx context.Context, c *change) (result outcome, out string, err error) {
	args := []string{"test", "-count=1", "-failfast", "-vet=off", "-timeout", r.longest.String()}
	if c != nil {
		dir, err := os.MkdirTemp("", "mutate")
		if err != nil {
			return 0, "", err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		changed, list := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
		text, err := json.Marshal(map[string]any{"Replace": map[string]string{c.file: changed}})
		if err := errors.Join(err, os.WriteFile(changed, c.apply(), 0o600), os.WriteFile(list, text, 0o600)); err != nil {
			return 0, "", err
		}
		args = append(args, "-overlay", list)
	}
	for _, pkg := range r.tests {
		if result, out, err = one(ctx, append(args, pkg)); err != nil || result != passed {
			break
		}
	}
	return result, out, err
}

func one(ctx context.Context, args []string) (outcome, string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, "", ctx.Err()
	case err == nil:
		return passed, "", nil
	case !errors.As(err, &exit):
		return 0, "", err
	case strings.Contains(string(out), "[build failed]"):
		return broken, string(out), nil
	}
	return failed, string(out), nil
}
