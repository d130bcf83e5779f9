// Package clocks makes clocks tick so often that tests need not wait for them.
package clocks

import (
	"io/fs"
	"regexp"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/triggers"
)

var (
	schedule = regexp.MustCompile(`schedule: .*`)
	label    = regexp.MustCompile(`(?m)^  labels: .*\n`) // by which a clock rests while there is no application
)

// EachSecond are the triggers, with those clocks in each second, whether or not there is an application.
func EachSecond(t testing.TB, functions ...string) fs.FS {
	t.Helper()
	quick, ticking := fstest.MapFS{}, 0
	require.NoError(t, fs.WalkDir(triggers.Files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(triggers.Files, path)
		if slices.ContainsFunc(functions, func(function string) bool { return path == function+".yaml" }) {
			text = label.ReplaceAll(schedule.ReplaceAll(text, []byte(`schedule: "* * * * * *"`)), nil)
			ticking++
		}
		quick[path] = &fstest.MapFile{Data: text}
		return err
	}))
	require.Equal(t, len(functions), ticking, "each of them has a clock")
	return quick
}
