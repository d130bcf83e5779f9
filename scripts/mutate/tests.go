package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/littoral-project/littoral/scripts/mutate/mutant"
)

// binary has the tests of a package, with all changes in it.
type binary struct {
	order     int // of the packages
	path, dir string
}

// test is one, which passes while nothing is changed.
type test struct {
	binary  binary
	name    string
	took    time.Duration
	reaches map[int]bool
}

// build makes a program of the tests of each package. It returns the changes that compile; the numbers of the others are not used.
func build(ctx context.Context, dir, pkg string, tested []string, changes []change) ([]change, []binary, error) {
	for {
		list, err := overlay(dir, changes)
		if err != nil {
			return nil, nil, err
		}
		out, err := exec.CommandContext(ctx, "go", "build", "-gcflags=-e", "-overlay", list, pkg).CombinedOutput()
		if err == nil {
			break
		}
		lines := errorsIn(string(out))
		kept := slices.DeleteFunc(slices.Clone(changes), func(c change) bool { return lines[place{filepath.Base(c.file.path), c.line}] })
		if len(kept) == len(changes) {
			return nil, nil, fmt.Errorf("does not compile: %s", out)
		}
		changes = kept
	}
	var binaries []binary
	for i, one := range tested {
		b := binary{order: i, path: filepath.Join(dir, strconv.Itoa(i)+".test")}
		var err error
		if b.dir, err = folder(ctx, one); err != nil {
			return nil, nil, err
		}
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", b.path, one)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, nil, fmt.Errorf("%s: %w: %s", one, err, out)
		}
		binaries = append(binaries, b)
	}
	return changes, binaries, nil
}

type place struct {
	file string
	line int
}

var compilerError = regexp.MustCompile(`(?m)([^/\s]+\.go):(\d+):\d+: `)

func errorsIn(out string) map[place]bool {
	lines := map[place]bool{}
	for _, found := range compilerError.FindAllStringSubmatch(out, -1) {
		line, _ := strconv.Atoi(found[2])
		lines[place{found[1], line}] = true
	}
	return lines
}

// reach runs each test by itself, with nothing changed, and notes which changes it comes by. They are returned in the order in which
// they are asked: package by package, the quickest first.
func (r *run) reach(ctx context.Context, dir string, binaries []binary) ([]test, error) {
	var all []test
	for _, b := range binaries {
		out, err := b.run(ctx, "", "-test.list", "^(Test|Example|Fuzz)")
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
		for name := range strings.FieldsSeq(string(out)) {
			all = append(all, test{binary: b, name: name})
		}
	}
	var g errgroup.Group
	g.SetLimit(r.workers)
	for i := range all {
		g.Go(func() (err error) {
			all[i], err = all[i].measured(ctx, filepath.Join(dir, strconv.Itoa(i)+".reached"))
			return err
		})
	}
	err := g.Wait()
	slices.SortStableFunc(all, func(a, b test) int {
		return cmp.Or(cmp.Compare(a.binary.order, b.binary.order), cmp.Compare(a.took, b.took))
	})
	return all, err
}

func (t test) measured(ctx context.Context, file string) (test, error) {
	begin := time.Now()
	out, err := t.binary.run(ctx, mutant.Reached+"="+file, "-test.run", "^"+t.name+"$")
	if err != nil {
		return t, fmt.Errorf("%s fails before anything is changed: %w: %s", t.name, err, out)
	}
	t.took, t.reaches = time.Since(begin), map[int]bool{}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return t, err
	}
	for line := range strings.FieldsSeq(string(text)) {
		number, err := strconv.Atoi(line)
		if err != nil {
			return t, err
		}
		t.reaches[number] = true
	}
	return t, nil
}

// together is how many tests run in one process, which spares most of its set-up.
const together = 8

// notice tells whether one of the tests fails with the change, and does so again.
func notice(ctx context.Context, number int, tests []test) (bool, error) {
	for len(tests) > 0 {
		n := 1
		for n < min(together, len(tests)) && tests[n].binary == tests[0].binary {
			n++
		}
		fails, err := failing(ctx, number, tests[:n])
		if fails {
			fails, err = failing(ctx, number, tests[:n])
		}
		if err != nil || fails {
			return fails, err
		}
		tests = tests[n:]
	}
	return false, nil
}

// failing tells whether one of the tests, which are of one package, fails. What takes long beyond all measure has failed.
func failing(ctx context.Context, number int, tests []test) (bool, error) {
	var names []string
	var took time.Duration
	for _, t := range tests {
		names = append(names, t.name)
		took += t.took
	}
	_, err := tests[0].binary.run(ctx, mutant.Chosen+"="+strconv.Itoa(number), "-test.run", "^("+strings.Join(names, "|")+")$",
		"-test.failfast", "-test.timeout", (5*took + 20*time.Second).String())
	var exit *exec.ExitError
	if ctx.Err() == nil && errors.As(err, &exit) {
		return true, nil
	}
	return false, err
}

// run runs the program with a setting of its environment, if one is given, and flags.
func (b binary) run(ctx context.Context, setting string, flags ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, b.path, flags...)
	cmd.Dir, cmd.Env = b.dir, os.Environ()
	if setting != "" {
		cmd.Env = append(cmd.Env, setting)
	}
	return cmd.CombinedOutput()
}
