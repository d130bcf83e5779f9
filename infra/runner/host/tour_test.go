package host

import (
	"bytes"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/cli"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

// TestTheTourMovesTheApplicationWhereverItIs: the commands of README with which people make a node fail must hit a node
// that has the application, also when that has left the node on which a new home has it.
func TestTheTourMovesTheApplicationWhereverItIs(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../../README.md")
	require.NoError(t, err)
	var tour []string
	for _, line := range regexp.MustCompile(`(?m)^ +\$ bin/littoral (fleet .*)$`).FindAllSubmatch(readme, -1) {
		tour = append(tour, string(line[1]))
	}
	require.GreaterOrEqual(t, len(tour), 2, "README has a tour")

	o := options(newHome(t))
	o.Database = storetest.URL(t)
	h := start(t, o)
	var g group
	require.Equal(t, http.StatusCreated, ask(t, h.URL(), o.Home, "operator", "POST", "/jobmanager/groups", example(t), &g))
	available(t, h.URL(), o.Home, g.ID)
	env := map[string]string{"LITTORAL_SERVER": h.URL(), "LITTORAL_TOKEN_FILE": h.TokenFile("operator")}
	moves := func(line string) {
		before := nodeOf(t, h, o, g.ID, "web")
		var out bytes.Buffer
		sh := cli.Shell{Stdout: &out, Stderr: &out, Getenv: func(name string) string { return env[name] }}
		require.Zero(t, sh.Run(t.Context(), strings.Fields(line)), "%s: %s", line, &out)
		require.Eventually(t, func() bool {
			now := nodeOf(t, h, o, g.ID, "web")
			return now != "" && now != before
		}, patience, 50*time.Millisecond, "%s: %s", line, &out)
		available(t, h.URL(), o.Home, g.ID)
	}
	first := nodeOf(t, h, o, g.ID, "web")
	moves("fleet drain " + first)
	require.Equal(t, http.StatusOK, ask(t, h.URL(), o.Home, "operator", "POST", "/fleet/restore", `{"node": "`+first+`"}`, nil))
	for _, line := range tour {
		moves(line)
	}
}
