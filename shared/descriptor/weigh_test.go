package descriptor

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// TestWeightIsNeverTooSmall builds texts from the characters with a meaning in YAML and compares with the library.
func TestWeightIsNeverTooSmall(t *testing.T) {
	t.Parallel()
	pieces := []string{
		"a: ", "b:", "- ", "-", "|", ">-", "|\n  ", "\n", "\n ", "\n  ", "\n    ", " ", `"`, "'", "[", "]", "{", "}", ",",
		"#", " # c", "? ", "&x ", "*x", "!t ", "\n---\n", "--- ", "x", "y z", ": ", "\t", "\u2028", "\r", "\\", "\n- a: |\n",
		"\nk: \"v", "\nk: v\n", "\nk: [1, 2]\n", "\nk: {a: b}\n", "\n...\n", "<<: *x",
	}
	random := rand.New(rand.NewPCG(1, 2))
	read, nodes := 0, 0
	for range 30_000 {
		var b strings.Builder
		for range 1 + random.IntN(14) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		text := []byte(b.String())
		decoder := yaml.NewDecoder(bytes.NewReader(text))
		built := 0
		for {
			var n yaml.Node
			if decode(decoder, &n) != nil {
				break
			}
			for _, root := range n.Content {
				built += count(root)
			}
		}
		require.LessOrEqual(t, built, weighYAML(text), "%q", text)
		if built > 0 {
			read++
			nodes += built
		}
	}
	require.Greater(t, read, 3000, "too few of the texts were YAML")
	require.Greater(t, nodes, read+read/3, "the texts are too simple")
}
