package main

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/images"
)

// shortest is the length from which a text in a program is taken for the statement that it is.
const shortest = 20

// statements returns those of each function that uses the store: what tests have seen it make, and what its program carries of the
// statements that the sources have as a constant, or that tests have seen any function make. The linker leaves out what a program
// never gets to, so that a function may also do what no test has tried of it. What most programs carry is of what all functions are
// built on, and counts where it was seen only.
func statements(dir string) (map[string][]string, error) {
	seen, inPrograms := map[string][]string{}, map[string][]string{}
	text, err := os.ReadFile(programsFile(dir))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &inPrograms); err != nil {
		return nil, err
	}
	for _, name := range storing() {
		list, err := storetest.ReadStatements(dir, name)
		if err != nil {
			return nil, err
		}
		seen[name] = list
	}
	for name, carried := range inPrograms {
		seen[name] = append(seen[name], carried...)
	}
	return seen, nil
}

func programsFile(dir string) string { return filepath.Join(dir, "programs.json") }

// texts are statements by how they begin, so that a program is gone through once.
type texts map[[shortest]byte]map[string]bool

func (t texts) add(list []string) {
	for _, sql := range list {
		if len(sql) < shortest {
			continue
		}
		start := [shortest]byte([]byte(sql[:shortest]))
		if t[start] == nil {
			t[start] = map[string]bool{}
		}
		t[start][sql] = true
	}
}

// carriedBy returns those that a program carries.
func (t texts) carriedBy(program []byte) []string {
	found := map[string]bool{}
	for i := range len(program) - shortest {
		for sql := range t[[shortest]byte(program[i:i+shortest])] {
			if bytes.HasPrefix(program[i:], []byte(sql)) {
				found[sql] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// readPrograms builds the functions as their images have them, and keeps in the folder which statements each carries.
func readPrograms(ctx context.Context, dir string) error {
	list, err := written(ctx)
	if err != nil {
		return err
	}
	all := texts{}
	all.add(list)
	for _, name := range storing() {
		if list, err = storetest.ReadStatements(dir, name); err != nil {
			return err
		}
		all.add(list)
	}
	built, err := os.MkdirTemp("", "programs-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(built) }()
	programs, err := images.Build(ctx, built, func(name string) bool { return slices.Contains(storing(), name) })
	if err != nil {
		return err
	}
	carried, carriers := map[string][]string{}, map[string]int{}
	for name, file := range programs {
		program, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		carried[name] = all.carriedBy(program)
		for _, sql := range carried[name] {
			carriers[sql]++
		}
	}
	for name, list := range carried {
		carried[name] = slices.DeleteFunc(list, func(sql string) bool { return carriers[sql] > len(programs)/2 })
	}
	text, err := json.MarshalIndent(carried, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(programsFile(dir), text, 0o644)
}
