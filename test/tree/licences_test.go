package tree_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// refused are the licences that must not be linked, by words at the beginning of their texts.
var refused = regexp.MustCompile(`(?i)gnu (affero |lesser |library )?general public license|business source license|` +
	`server side public license|commons clause|elastic license`)

// TestLicences: every module that one of our binaries links has a licence, and none of the refused ones.
func TestLicences(t *testing.T) {
	t.Parallel()
	all := packages(t)
	modules := map[string]string{} // path -> folder
	for _, main := range ours(t, "functions/cmd", "scripts/littoral", "infra/runner/littoral-up") {
		for _, dep := range main.Deps {
			if p := all[dep]; p.Module != nil && !p.Module.Main {
				modules[p.Module.Path] = p.Module.Dir
			}
		}
	}
	require.Contains(t, modules, "github.com/jackc/pgx/v5")
	for path, dir := range modules {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			var files []string
			for _, pattern := range []string{"LICEN[CS]E*", "COPYING*", "[Ll]icen[cs]e*"} {
				found, err := filepath.Glob(filepath.Join(dir, pattern))
				require.NoError(t, err)
				files = append(files, found...)
			}
			require.NotEmpty(t, files, "no licence file")
			for _, file := range files {
				if info, err := os.Stat(file); err != nil || info.IsDir() {
					continue
				}
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				require.False(t, refused.Match(text[:min(len(text), 500)]), "%s is %s", filepath.Base(file), refused.Find(text))
			}
		})
	}
}
