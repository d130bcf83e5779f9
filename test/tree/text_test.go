package tree_test

import (
	"bytes"
	"go/parser"
	"go/token"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryPackageHasADocComment: in the form of godoc.
func TestEveryPackageHasADocComment(t *testing.T) {
	t.Parallel()
	for _, p := range ours(t) {
		doc := p.Doc
		if doc == "" { // a package with only tests, or a generated main
			doc = docOf(t, p)
		}
		if below(p.folder(), "functions/cmd") {
			continue // generated: one statement
		}
		if p.Name == "main" {
			require.NotEmpty(t, doc, "%s has no doc comment", p.folder())
			continue
		}
		require.Regexp(
			t,
			`^Package `+strings.TrimSuffix(p.Name, "_test")+`(_test)?\b`,
			doc,
			"%s has no doc comment",
			p.folder(),
		)
	}
}

// docOf finds the doc comment in the test files.
func docOf(t testing.TB, p *pkg) string {
	t.Helper()
	for _, name := range append(p.XTestGoFiles, p.TestGoFiles...) {
		file, err := parser.ParseFile(
			token.NewFileSet(),
			filepath.Join(p.Dir, name),
			nil,
			parser.PackageClauseOnly|parser.ParseComments,
		)
		require.NoError(t, err)
		if text := file.Doc.Text(); text != "" {
			return text
		}
	}
	return ""
}

// TestNothingLocalIsInTheTree: no path of a developer's machine, and no address of a proxy or registry that only that
// machine can reach.
func TestNothingLocalIsInTheTree(t *testing.T) {
	t.Parallel()
	local := localNames(t)
	for _, name := range files(t) {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		for what, pattern := range local {
			if at := pattern.FindIndex(text); at != nil {
				line := 1 + bytes.Count(text[:at[0]], []byte("\n"))
				t.Errorf("%s:%d holds %s", name, line, what)
			}
		}
	}
}

func localNames(t testing.TB) map[string]*regexp.Regexp {
	t.Helper()
	local := map[string]*regexp.Regexp{
		"somebody's home folder": regexp.MustCompile(`(^|[\s"'(=])/(home|Users)/[a-z]+/[a-z]`),
		"somebody's workshop":    regexp.MustCompile(`(^|[\s"'(=])/wor[k]/[a-z]`),
	}
	here, err := filepath.Abs(root)
	require.NoError(t, err)
	local["the path of this checkout"] = word(here)
	out, err := run("go", "env", "GOPROXY", "GOSUMDB", "GONOPROXY")
	require.NoError(t, err)
	addresses := string(out)
	for _, name := range []string{
		"PIP_INDEX_URL", "NPM_CONFIG_REGISTRY", "HTTP_PROXY", "HTTPS_PROXY", "https_proxy", "http_proxy",
	} {
		addresses += "\n" + os.Getenv(name)
	}
	for _, address := range regexp.MustCompile(`[\s,|]+`).Split(addresses, -1) {
		u, err := url.Parse(address)
		if err != nil || u.Hostname() == "" {
			continue
		}
		local["the host of a proxy ("+u.Scheme+")"] = word(u.Hostname())
	}
	return local
}

// word matches the text unless a longer name continues around it.
func word(text string) *regexp.Regexp {
	return regexp.MustCompile(`(^|[^A-Za-z0-9_.-])` + regexp.QuoteMeta(text) + `($|[^A-Za-z0-9_-])`)
}

func TestNoMergeMarkers(t *testing.T) {
	t.Parallel()
	marker := regexp.MustCompile(`(?m)^(<{7}|>{7}) `)
	for _, name := range files(t) {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.False(t, marker.Match(text), "%s holds a merge marker", name)
	}
}
