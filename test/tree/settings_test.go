package tree_test

import (
	"os"
	"path/filepath"
	"regexp"
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
			text, err := os.ReadFile(file) //nolint:gosec // a source of ours
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
