package tree_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A reaction runs in a transaction, which may run again and which keeps its locks until the end. So it calls nobody:
// what has effects outside Postgres is a worker, which claims, acts and settles (store.Claim).

// calling finds what makes a package one that calls others over the network.
var calling = regexp.MustCompile(
	`http\.NewRequest|http\.(Get|Head|Post|PostForm)\(|http\.Client\{|http\.Transport\{|http\.Default(Client|Transport)` +
		`|net\.Dial|tls\.Dial|grpc\.NewClient|k8s\.io/client-go/`)

// given finds where a function takes from what it is given something that it could call others with, or hands all of that
// on.
var given = regexp.MustCompile(`env\.(HTTP|Observe)\b|[(,]\s*env\s*[,)]`)

// carriers are reached by every function: they serve the call itself, outside its transaction.
var carriers = map[string]string{
	"shared/auth":            "fetches the issuer's keys before the call begins",
	"shared/events":          "publishes after the commit",
	"shared/function":        "makes the client that a worker may take from its Env",
	"shared/events/identity": "identifies the publisher after the commit",
	"shared/observe":         "reports calls after they ended",
}

// rulesOnly are packages that a reaction reaches only for something else in them. It has no client to give to them.
var rulesOnly = map[string]string{
	"shared/webhook":         "which addresses a policy may name",
	"shared/telemetry/rules": "what a rule group may contain",
}

var reacts = regexp.MustCompile(`(?m)^func \(.*\) React\(`)

// reactions are the folders of the functions that run in a transaction.
func reactions(t *testing.T) (found []string) {
	t.Helper()
	for _, folder := range folders(t) {
		if reacts.MatchString(source(t, folder)) {
			found = append(found, folder)
		}
	}
	slices.Sort(found)
	return found
}

// source is the text of the folder's own files without tests.
func source(t *testing.T, folder string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	require.NoError(t, err)
	var b strings.Builder
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			b.Write(text)
		}
	}
	return b.String()
}

// clients are our packages that call others.
func clients(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, p := range ours(t, "shared") {
		if calling.MatchString(source(t, p.folder())) {
			found[p.folder()] = true
		}
	}
	return found
}

// reached lists the clients in reach of the folder's package.
func reached(t *testing.T, folder string, clients map[string]bool) (found []string) {
	t.Helper()
	for _, path := range packages(t)[module+"/"+folder].Deps {
		if at := strings.TrimPrefix(path, module+"/"); clients[at] && carriers[at] == "" {
			found = append(found, at)
		}
	}
	return found
}

func TestReactionsCallNobody(t *testing.T) {
	t.Parallel()
	clients, found := clients(t), reactions(t)
	require.Contains(t, found, "functions/policymanager/remediate")
	used := map[string]bool{}
	for _, folder := range found {
		require.Empty(t, given.FindString(source(t, folder)), "%s takes a client: make it a worker", folder)
		require.Empty(t, calling.FindString(source(t, folder)), "%s calls others: make it a worker", folder)
		for _, at := range reached(t, folder, clients) {
			require.Contains(t, rulesOnly, at, "%s reaches %s, which calls others: make it a worker", folder, at)
			used[at] = true
		}
	}
	for at := range rulesOnly {
		require.True(t, used[at], "no reaction reaches %s any more", at)
	}
	for at := range carriers {
		require.True(t, clients[at] || at == "shared/events/identity", "%s calls nobody any more", at)
	}
}

// TestTheClientsOfWorkersAreFound: otherwise the test above could not fail.
func TestTheClientsOfWorkersAreFound(t *testing.T) {
	t.Parallel()
	clients := clients(t)
	for folder, client := range map[string]string{
		"functions/policymanager/webhook":               "shared/webhook",
		"functions/policymanager/rule":                  "shared/policy/ruleclient",
		"functions/deploymentmanager/deploy-kubernetes": "shared/orchestrator/kubernetes",
		"functions/clock/pause":                         "shared/kube",
	} {
		require.Contains(t, reached(t, folder, clients), client)
		require.NotEmpty(t, given.FindString(source(t, folder)), folder)
		require.NotContains(t, reactions(t), folder)
	}
}
