// Package zenoh compares shared/bus/keyexpr with Zenoh's own code, which runs as WebAssembly in Node: "make e2e-zenoh".
package zenoh

import (
	"bufio"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/bus/keyexpr"
)

// EnvModules names the folder into which npm has installed what package.json asks for.
const EnvModules = "LITTORAL_ZENOH_MODULES"

var (
	count = flag.Int("expressions", 20_000, "how many random pairs of expressions are compared")
	seed  = flag.Uint64("seed", 1, "of the random expressions")
)

// oracle is Zenoh's code in a process of its own.
type oracle struct {
	t   *testing.T
	in  *bufio.Writer
	out *bufio.Scanner
}

func start(t *testing.T) *oracle {
	folder := os.Getenv(EnvModules)
	if folder == "" {
		t.Skipf("%s is not set: \"make e2e-zenoh\" installs Zenoh's code and runs this test", EnvModules)
	}
	cmd := exec.Command("node", "oracle.mjs", folder)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, in.Close())
		require.NoError(t, cmd.Wait())
	})
	return &oracle{t: t, in: bufio.NewWriter(in), out: bufio.NewScanner(out)}
}

// ask returns Zenoh's answer, and whether it gave one instead of a refusal.
func (o *oracle) ask(operation, a, b string) (any, bool) {
	line, err := json.Marshal([]string{operation, a, b})
	require.NoError(o.t, err)
	_, err = o.in.Write(append(line, '\n'))
	require.NoError(o.t, err)
	require.NoError(o.t, o.in.Flush())
	require.True(o.t, o.out.Scan(), "the oracle has ended")
	var answer any
	require.NoError(o.t, json.Unmarshal(o.out.Bytes(), &answer))
	_, refused := answer.(map[string]any)
	return answer, !refused
}

// random returns text that is often a key expression, and often one with wildcards close together.
func random(r *rand.Rand) string {
	pieces := []string{"a", "b", "ab", "*", "**", "$*", "@", "@a", "ü", "/", "/", "/", "/*/", "/**/", "$", "#", "?", "//"}
	weights := 14 // of them, those after are rare
	var text strings.Builder
	for range 1 + r.IntN(7) {
		n := weights
		if r.IntN(20) == 0 {
			n = len(pieces)
		}
		text.WriteString(pieces[r.IntN(n)])
	}
	s := text.String()
	if r.IntN(8) > 0 {
		for strings.Contains(s, "//") {
			s = strings.ReplaceAll(s, "//", "/")
		}
		s = strings.Trim(s, "/")
	}
	return s
}

func TestKeyExpressions_agreeWithZenoh(t *testing.T) {
	zenoh := start(t)
	r := rand.New(rand.NewPCG(*seed, 0))
	var canonical []keyexpr.Expr
	for range *count {
		text := random(r)
		_, parses := zenoh.ask("parse", text, "")
		_, err := keyexpr.Parse(text)
		require.Equal(t, parses, err == nil, "whether %q is a canonical expression (%v)", text, err)
		if strings.Contains(text, "$*$*") {
			continue // Zenoh's own canonical form of it crashes (ab$*$*) or is refused (a$*$*$*)
		}
		want, valid := zenoh.ask("canonical", text, "")
		got, err := keyexpr.Canonical(text)
		require.Equal(t, valid, err == nil, "whether %q is an expression (%v)", text, err)
		if err == nil {
			require.Equal(t, want, string(got), text)
			canonical = append(canonical, got)
		}
	}
	related := 0
	for range *count {
		a, b := canonical[r.IntN(len(canonical))], canonical[r.IntN(len(canonical))]
		intersects, _ := zenoh.ask("intersects", string(a), string(b))
		require.Equal(t, intersects, a.Intersects(b), "%s intersects %s", a, b)
		includes, _ := zenoh.ask("includes", string(a), string(b))
		require.Equal(t, includes, a.Includes(b), "%s includes %s", a, b)
		if a.Intersects(b) {
			related++
		}
	}
	require.Greater(t, related, *count/20, "too few of the pairs share a key to show anything")
	t.Logf("%d texts, %d of them expressions; %d pairs, %d of them share a key", *count, len(canonical), *count, related)
}
