package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/images"
)

// shortest is the length from which a text in a program is taken for the statement that it is.
const shortest = 20

// statements returns those of each function that uses the store: what tests have seen it make, and what its program carries of the
// statements that they have seen any function make. The linker leaves out what a program never gets to, so that a function may also
// do what no test has tried of it. What most programs carry is of what all functions are built on, and counts where it was seen only.
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

// readPrograms builds the functions as their images have them, and keeps in the folder which statements each carries.
func readPrograms(ctx context.Context, dir string) error {
	texts := map[string]bool{}
	for _, name := range storing() {
		list, err := storetest.ReadStatements(dir, name)
		if err != nil {
			return err
		}
		for _, sql := range list {
			if len(sql) >= shortest {
				texts[sql] = true
			}
		}
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
		for sql := range texts {
			if bytes.Contains(program, []byte(sql)) {
				carried[name] = append(carried[name], sql)
				carriers[sql]++
			}
		}
	}
	for name, list := range carried {
		list = slices.DeleteFunc(list, func(sql string) bool { return carriers[sql] > len(programs)/2 })
		slices.Sort(list)
		carried[name] = list
	}
	text, err := json.MarshalIndent(carried, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(programsFile(dir), text, 0o644)
}
