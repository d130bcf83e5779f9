package tree_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// TestTheReadmeIsShort: what it is, two commands, a tour, a picture and links. Everything else has a page of its own.
func TestTheReadmeIsShort(t *testing.T) {
	t.Parallel()
	require.LessOrEqual(t, len(strings.Fields(page(t, "README.md"))), 1200, "words of README.md")
}

// TestLinksBetweenPagesLead: each relative link of a page leads to a file of the tree, and to a heading of it.
func TestLinksBetweenPagesLead(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	found := 0
	for _, name := range files(t) {
		if filepath.Ext(name) != ".md" {
			continue
		}
		for _, to := range link.FindAllStringSubmatch(page(t, name), -1) {
			target, anchor, _ := strings.Cut(to[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			found++
			file := name
			if target != "" {
				file = filepath.Join(filepath.Dir(name), target)
			}
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s: the link %s leads nowhere", name, to[1])
			} else if anchor != "" && !headings(page(t, file))[anchor] {
				t.Errorf("%s: %s has no heading %q", name, file, anchor)
			}
		}
	}
	require.Positive(t, found)
}

// TestSectionsOfContractsExist: the code cites the page by section.
func TestSectionsOfContractsExist(t *testing.T) {
	t.Parallel()
	sections := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^##+ ([0-9.]*[0-9])\.? `).FindAllStringSubmatch(page(t, "shared/docs/contracts.md"), -1) {
		sections[m[1]] = true
	}
	cited := regexp.MustCompile(`docs/contracts\.md\s(?://\s)?((?:(?:,|,? and)?\s?(?://\s)?§[0-9.]*[0-9])+)`)
	number := regexp.MustCompile(`§([0-9.]*[0-9])`)
	found := 0
	for _, name := range files(t) {
		if filepath.Ext(name) != ".go" {
			continue
		}
		text := page(t, name)
		require.NotContains(t, strings.ReplaceAll(text, "shared/docs/contracts", ""), "contracts/icos"+".md", name)
		for _, m := range cited.FindAllStringSubmatch(text, -1) {
			for _, n := range number.FindAllStringSubmatch(m[1], -1) {
				found++
				if !sections[n[1]] {
					t.Errorf("%s: shared/docs/contracts.md has no section %s", name, n[1])
				}
			}
		}
	}
	require.Greater(t, found, 30)
}

// headings returns the anchors of a page's headings.
func headings(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		found[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])] = true
	}
	return found
}

func page(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name)) // a file of ours
	require.NoError(t, err)
	return string(text)
}
