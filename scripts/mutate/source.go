package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// file is one of the package that is not a test.
type file struct {
	path    string // absolute
	source  []byte
	set     *token.FileSet
	tree    *ast.File
	pkg     *types.Package
	imports map[string]string // names by path
}

// listed is what the go command says of a package.
type listed struct {
	ImportPath, Name, Dir, Export string
	GoFiles                       []string
}

// list names the package and all that it needs, with what they export.
func list(ctx context.Context, pkg string) (*listed, map[string]listed, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-json=ImportPath,Name,Dir,Export,GoFiles", pkg)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go list %s: %w", pkg, err)
	}
	all := map[string]listed{}
	var last listed // the package itself, after what it needs
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var one listed
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return &last, all, nil
		} else if err != nil {
			return nil, nil, err
		}
		all[one.ImportPath], last = one, one
	}
}

// folder returns where the package is.
func folder(ctx context.Context, pkg string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", pkg).Output()
	return strings.TrimSpace(string(out)), err
}

// changesOf lists what can be changed in a package.
func changesOf(ctx context.Context, pkg string) ([]change, error) {
	this, all, err := list(ctx, pkg)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	var files []*file
	var trees []*ast.File
	for _, name := range this.GoFiles {
		f := &file{path: filepath.Join(this.Dir, name), set: set, imports: map[string]string{}}
		if f.source, err = os.ReadFile(f.path); err != nil {
			return nil, err
		}
		if f.tree, err = parser.ParseFile(set, f.path, f.source, 0); err != nil {
			return nil, err
		}
		for _, i := range f.tree.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return nil, err
			}
			f.imports[path] = all[path].Name
			if i.Name != nil {
				f.imports[path] = i.Name.Name
			}
		}
		files, trees = append(files, f), append(trees, f.tree)
	}
	config := types.Config{Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(all[path].Export)
	})}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	checked, err := config.Check(this.ImportPath, set, trees, info)
	if err != nil {
		return nil, err
	}
	var changes []change
	for _, f := range files {
		f.pkg = checked
		changes = append(changes, f.find(info)...)
	}
	return changes, nil
}

// with returns the file with the changes in it, each behind its number.
func (f *file) with(changes []change) []byte {
	type texts struct {
		after, before []string
		instead       string
		cut           int
	}
	places := map[int]*texts{}
	at := func(pos token.Pos) *texts {
		offset := f.set.Position(pos).Offset
		if places[offset] == nil {
			places[offset] = &texts{}
		}
		return places[offset]
	}
	name := at(f.tree.Name.End())
	name.after = append(name.after, `; import "github.com/littoral-project/littoral/scripts/mutate/mutant"`)
	for _, c := range changes {
		if c.file != f {
			continue
		}
		for _, e := range c.edits(c.number) {
			switch p := at(e.at); e.kind {
			case before: // what begins at one place is listed from the outer to the inner
				p.before = append(p.before, e.text)
			case after:
				p.after = slices.Insert(p.after, 0, e.text)
			case instead:
				p.instead, p.cut = e.text, e.cut
			}
		}
	}
	var out bytes.Buffer
	done := 0
	for _, offset := range slices.Sorted(maps.Keys(places)) {
		p := places[offset]
		out.Write(f.source[done:offset])
		out.WriteString(strings.Join(p.after, "") + strings.Join(p.before, "") + p.instead)
		done = offset + p.cut
	}
	out.Write(f.source[done:])
	return out.Bytes()
}

// overlay writes the changed files to a folder, and what the go command has to read in the place of what.
func overlay(dir string, changes []change) (string, error) {
	replace := map[string]string{}
	for _, c := range changes {
		if replace[c.file.path] != "" {
			continue
		}
		name := filepath.Join(dir, filepath.Base(c.file.path))
		if err := os.WriteFile(name, c.file.with(changes), 0o600); err != nil {
			return "", err
		}
		replace[c.file.path] = name
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	path := filepath.Join(dir, "overlay.json")
	return path, errors.Join(err, os.WriteFile(path, text, 0o600))
}
