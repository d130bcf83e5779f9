package tree_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// notForUsers are variables that are not set by the operators of Littoral.
var notForUsers = map[string]string{
	"PREWAKE_CHAIN":           "is generated into each Service",
	"K_SERVICE":               "is set by Knative",
	"KUBERNETES_SERVICE_HOST": "is set by Kubernetes",
	"KUBERNETES_SERVICE_PORT": "is set by Kubernetes",
}

// TestEverySettingIsDocumented: each variable that functions read is in shared/docs/settings.md.
func TestEverySettingIsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "shared/docs/settings.md"))
	require.NoError(t, err)
	tag := regexp.MustCompile(`envconfig:"([A-Z0-9_]+)"`)
	read := map[string]bool{}
	for _, p := range ours(t) {
		if !below(p.folder(), "functions") && !below(p.folder(), "shared") {
			continue
		}
		files, err := filepath.Glob(filepath.Join(p.Dir, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file) // a source of ours
			require.NoError(t, err)
			for _, name := range tag.FindAllStringSubmatch(string(text), -1) {
				read[name[1]] = true
				if notForUsers[name[1]] == "" {
					require.Contains(t, string(page), "`"+name[1]+"`", "of %s", p.folder())
				}
			}
		}
	}
	require.NotEmpty(t, read)
	for name, why := range notForUsers {
		if !read[name] {
			t.Errorf("%s, which %s, is read by nothing: remove it from the list", name, why)
		}
	}
}

// TestPostgresSaysOfWhatTypeParametersAre: images are built without the table by which pgx would guess it (.ko.yaml), so that what works
// in a test would fail there.
func TestPostgresSaysOfWhatTypeParametersAre(t *testing.T) {
	t.Parallel()
	guesses := regexp.MustCompile(`pgx\.QueryExecModeExec\b`)
	for _, file := range files(t) {
		if !strings.HasSuffix(file, ".go") || strings.HasPrefix(file, "test/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		require.False(t, guesses.Match(text), "%s: use pgx.QueryExecModeDescribeExec", file)
	}
}

// changesEnvironment are files that change the environment of their process, for something that reads nothing else.
var changesEnvironment = map[string]string{
	"shared/cli/small_test.go":             "where the command line finds programs",
	"shared/store/localpg/install_test.go": "where a library leaves its log",
	"test/bench/world.go":                  "the port that libpq reads",
	"test/e2e/knative/upgrade_test.go":     "what the scripts of a deployment are started with",
}

// TestNobodySetsTheEnvironment: settings are a value, so that several hosts can live in one process and tests can run beside
// each other.
func TestNobodySetsTheEnvironment(t *testing.T) {
	t.Parallel()
	set := regexp.MustCompile(`\.(Setenv|Unsetenv)\(`)
	var found []string
	for _, file := range files(t) {
		if !strings.HasSuffix(file, ".go") || file == "test/tree/settings_test.go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		if set.Match(text) {
			found = append(found, file)
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(changesEnvironment)), found)
}
