package descriptor

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/compose"
	"github.com/littoral-project/littoral/shared/problem"
)

// valid is an accepted descriptor, to which hostile text is appended.
const valid = "name: a\ncomponents:\n- name: c\n  manifests:\n  - name: m\n    manifest: {kind: Pod}\n"

// fill repeats a piece to just below the size limit.
func fill(piece string) string { return strings.Repeat(piece, (MaxBytes-200)/len(piece)) }

// numbered repeats a piece n times with a number in each.
func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// aliases builds eleven lists of nine aliases, each to the list before it.
func aliases() string {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 12; i++ {
		nine := strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9)
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(nine, ", "))
	}
	return text
}

// merges builds objects that each merge the one before, the first with many keys.
func merges() string {
	text := "m0: &m0\n" + numbered(5000, "  k%d: 1\n")
	for i := 1; i < 2000; i++ {
		text += fmt.Sprintf("m%d: &m%d\n  <<: *m%d\n", i, i, i-1)
	}
	return text
}

// stairs indents every line by one more blank.
func stairs() string {
	var b strings.Builder
	for i := 0; b.Len() < MaxBytes-5000; i++ {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

type refused struct {
	doc  string
	kind problem.Kind
}

func hostile() map[string]refused {
	large, malformed, invalid := problem.TooLarge, problem.Malformed, problem.Invalid
	return map[string]refused{
		"an alias bomb is too large": {valid + aliases(), large},
		"a merge bomb is too large":  {valid + merges(), large},
		"an alias bomb of one long text": {
			"a: &a " + fill("x")[:1<<19] + "\nb:\n" + strings.Repeat("- *a\n", 9999), large,
		},
		"an alias inside what it names":               {valid + "a: &a [*a]\n", malformed},
		"an alias chain that nests too deep":          {"a0: &a0 [x]\n" + chain(100), malformed},
		"a hundred thousand lists within lists":       {strings.Repeat("[", 100_000), large},
		"ten thousand lists within lists":             {strings.Repeat("[", 10_000), malformed},
		"ten thousand objects within objects":         {strings.Repeat("{a: ", 10_000), malformed},
		"a hundred thousand dashes":                   {strings.Repeat("- ", 99_000), malformed},
		"a hundred thousand JSON lists, all closed":   {strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000), large},
		"a hundred thousand JSON objects":             {nested(99_000), large},
		"deep JSON":                                   {nested(5000), malformed},
		"ever deeper indentation":                     {stairs(), malformed},
		"a thousand dashes on each line":              {fill(strings.Repeat("- ", 1000) + "\n"), large},
		"a mebibyte of one key":                       {fill("a"), invalid},
		"a mebibyte of one key with a value":          {fill("a") + ": 1\n", malformed},
		"a mebibyte of one quoted key":                {`"` + fill("a") + `": 1`, malformed},
		"a quote that is never closed":                {valid + `a: "` + fill("a\n")[:MaxBytes-1000], malformed},
		"more than a mebibyte":                        {strings.Repeat("#", MaxBytes+1), large},
		"tag directives, each compared with the rest": {numbered(50_000, "%%TAG !%x! a\n") + "---\na: 1\n", malformed},
		"anchors without end":                         {numbered(100_000, "- &%x 1\n"), large},
		"a comment on every value":                    {fill("a: #x\n"), large},
		"a comment on every entry":                    {fill("- #a\n"), large},
		"a comment below every entry":                 {fill("- a\n#x\n"), large},
		"comments and nothing else":                   {fill("#\n"), large},
		"blank lines and nothing else":                {fill("\n"), invalid},
		"keys without values":                         {fill("a:\n"), large},
		"dashes without values":                       {fill("-\n"), large},
		"question marks":                              {fill("?\n"), large},
		"a list of ones":                              {"[" + fill("1,") + "1]", large},
		"a list of pairs":                             {"[" + fill("a: b,") + "1]", large},
		"a list of objects":                           {"[" + fill("{a},") + "1]", large},
		"a list of empty texts":                       {"[" + fill(`"",`) + `""]`, large},
		"a JSON list of ones":                         {`{"a":[` + fill("1,") + "1]}", large},
		"aliases to one value":                        {"- &a 1\n" + fill("- *a\n"), large},
		"documents without end":                       {fill("--- a\n"), large},
		"three hundred documents":                     {valid + strings.Repeat("---\nkind: Pod\n", 300), large},
		"structure below a false block scalar":        {"- a: |\n [" + fill("1,") + "1]", large},
		"structure in a block by another line break":  {"a: |\n  x\u2028b: [" + fill("1,") + "1]", large},
		"structure below a quote in plain text":       {"a: b\n  \"c\nd: [" + fill("1,") + "1]", large},
		"ten thousand components":                     {"components:\n" + numbered(10_000, "- name: c%d\n"), invalid},
		"twenty thousand policies": {
			valid + "policies:\n" + strings.Repeat("- security: low\n", 20_000), invalid,
		},
		"a thousand components that share a large manifest": {"components:\n" +
			numbered(999, "- {name: c%d, manifests: [m]}\n") + "manifests:\n- name: m\n  manifest: {kind: " +
			strings.Repeat("x", 100_000) + "}\n", large},
		"hundreds of components that share all their objects": {"components:\n" +
			numbered(300, "- {name: a%d, targets: {cluster_name: c%[1]d}, manifests: ["+numbered(40, "m%d,")+"]}\n") +
			numbered(300, "- {name: b%d, manifests: ["+numbered(40, "m%d,")+"]}\n") + "manifests:\n" +
			numbered(40, "- {name: m%d, manifest: {apiVersion: v1, kind: Pod, metadata: {name: m%[1]d}}}\n"), invalid},
		"twenty thousand services": {"components:\n- name: c\n  communication:\n" +
			strings.Repeat("  - incoming: a\n", 20_000), invalid},
		"twenty thousand manifests":    {valid + "manifests:\n" + strings.Repeat("- {}\n", 20_000), invalid},
		"many entries without a name":  {"components:\n" + strings.Repeat("- a: 1\n", 999), invalid},
		"thousands of unknown keys":    {valid + numbered(40_000, "k%d: 1\n"), invalid},
		"thousands of variables":       {valid + "policies:\n- variables:\n" + numbered(40_000, "    k%d: 1\n"), invalid},
		"the same key again and again": {valid + "x:\n" + strings.Repeat(" a: 1\n", 40_000), invalid},
		"as many entries as allowed":   {strings.Repeat("- a\n", 99_000), invalid},
		"as many tags as allowed":      {strings.Repeat("- !a b\n", 99_000), invalid},
		"as many anchors as allowed":   {strings.Repeat("- &a b\n", 33_000), invalid},
		"as many aliases as allowed":   {"- &a b\n" + strings.Repeat("- *a\n", 99_000), invalid},
		"as many keys as allowed":      {numbered(49_000, "a%d: b\n"), invalid},
		"as many comments as allowed":  {numbered(19_000, "a%d: b #c\n"), invalid},
		"as many pairs as allowed":     {"[" + strings.Repeat("a: b,", 24_000) + "a]", invalid},
		"as many objects as allowed":   {"[" + strings.Repeat("{a},", 19_000) + "a]", invalid},
		"as many JSON entries":         {`{"a":[` + strings.Repeat(`"",`, 99_000) + "1]}", invalid},
		"an oversized nodelabel": {"components:\n- name: c\n  requirements: {nodelabel: {key: a, values: [" +
			strings.Repeat("1,", 40_000) + "1]}}\n", invalid},
		"invalid UTF-8":         {valid + "a: \"\xff\xfe\"\n", malformed},
		"UTF-16":                {"\xff\xfen\x00a\x00", malformed},
		"a NUL byte":            {valid + "a: b\x00\n", malformed},
		"a NUL escape":          {valid + `a: "b\0"` + "\n", invalid},
		"a tag that names code": {valid + "a: !!python/object/apply:os.system [ls]\n", invalid},
		"an empty document":     {"", invalid},
		"a text":                {"just text", invalid},
		"a list":                {"- a\n- b\n", invalid},
	}
}

// nested is a JSON object within an object, and so on.
func nested(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }

// chain is lists that each contain an alias to the list before.
func chain(n int) string {
	var b strings.Builder
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [*a%d]\n", i, i, i-1)
	}
	return b.String()
}

// TestHostile measures allocated bytes, not time. It counts all of them, including those that soon become garbage, so
// the memory in use is well below. No other test may run at the same time.
func TestHostile(t *testing.T) {
	for name, row := range hostile() {
		t.Run(name, func(t *testing.T) {
			doc := []byte(row.doc)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Parse(doc, compose.Read)
			runtime.ReadMemStats(&after)
			require.Error(t, err)
			require.Equal(t, row.kind, problem.KindOf(err), "%.500s", err)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
			require.Less(t, len(err.Error()), 64<<10, "the answer itself must stay small")
		})
	}
}
