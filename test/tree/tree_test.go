// Package tree_test checks the whole source tree: every function is wired as a cluster would wire it, imports follow
// the direction in the design, and nothing heavy, unlicensed or local has been added.
//
// It runs "go list" once for all tests, so it takes seconds. The exceptions to each check are next to it, with their
// reasons; add new ones there.
package tree_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	root   = "../.."
	module = "github.com/littoral-project/littoral"
)

// pkg is the output of "go list" about a package.
type pkg struct {
	ImportPath   string
	Name         string
	Dir          string
	Doc          string
	Standard     bool
	Imports      []string
	Deps         []string
	XTestGoFiles []string
	TestGoFiles  []string
	Module       *struct {
		Path, Version, Dir string
		Main               bool
	}
}

var list = sync.OnceValues(func() (map[string]*pkg, error) {
	out, err := run("go", "list", "-deps",
		"-json=ImportPath,Name,Dir,Doc,Standard,Imports,Deps,XTestGoFiles,TestGoFiles,Module", "./...")
	if err != nil {
		return nil, err
	}
	all := map[string]*pkg{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &pkg{}
		if err := decoder.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all[p.ImportPath] = p
	}
})

// run runs a command at the root of the tree.
func run(name string, args ...string) ([]byte, error) {
	command := exec.Command(name, args...)
	command.Dir = root
	out, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, failed.Stderr)
	}
	return out, err
}

// packages returns every package that the tree is built from, ours and others, by import path.
func packages(t testing.TB) map[string]*pkg {
	t.Helper()
	all, err := list()
	require.NoError(t, err)
	return all
}

// ours returns the packages of the tree below the given folders, ordered by import path; all of them if there are no
// folders.
func ours(t testing.TB, folders ...string) []*pkg {
	t.Helper()
	all := packages(t)
	var found []*pkg
	for _, path := range slices.Sorted(maps.Keys(all)) {
		p := all[path]
		if p.Module == nil || !p.Module.Main {
			continue
		}
		if len(folders) == 0 || slices.ContainsFunc(folders, func(f string) bool { return below(p.folder(), f) }) {
			found = append(found, p)
		}
	}
	require.NotEmpty(t, found, "%v", folders)
	return found
}

// folder returns the package's folder, relative to the root of the tree.
func (p *pkg) folder() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

func below(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// files returns the files of the tree that are under version control or could be added to it.
func files(t testing.TB) []string {
	t.Helper()
	var names []string
	if out, err := run("git", "ls-files", "-z"); err == nil {
		for _, name := range strings.Split(strings.TrimRight(string(out), "\x00"), "\x00") {
			if _, err := os.Stat(filepath.Join(root, name)); err == nil {
				names = append(names, name)
			}
		}
	} else {
		names = walk(t)
	}
	require.Contains(t, names, "go.mod")
	return names
}

// walk lists the files of a tree without version control.
func walk(t testing.TB) []string {
	t.Helper()
	var names []string
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() && (name == "bin" || name != "." && name != ".ci" && strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() {
			names = append(names, filepath.ToSlash(name))
		}
		return nil
	}))
	return names
}
