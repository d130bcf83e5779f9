package tree_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
)

// ofTheProcess are the secrets that a function's process reads before the function is made.
var ofTheProcess = []string{
	"DATABASE_URL", "EVENT_KEY", "EVENT_KEY_FORMER", "SESSION_KEY", "SESSION_KEY_FORMER", "OTEL_EXPORTER_OTLP_HEADERS",
}

// TestAFunctionDeclaresTheSecretsItReads, and no others: each is made once with settings that record what they are asked.
func TestAFunctionDeclaresTheSecretsItReads(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), store.Config{DatabaseURL: "postgres://nowhere.invalid/none"}, nil, nil)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	verifier := auth.NewVerifier(auth.Config{}, nil, nil)
	for name, entry := range entries(t) {
		var mu sync.Mutex
		read := map[string]bool{}
		record := func(setting string) (string, bool) {
			mu.Lock()
			defer mu.Unlock()
			read[setting] = true
			return "", false
		}
		_, err := entry.New(function.Platform{DB: db, Auth: verifier, Settings: record}.Env(name))
		require.NoError(t, err, name)
		declared := entry.Spec.Secrets()
		for _, secret := range function.AllSecrets() {
			if !slices.Contains(ofTheProcess, secret) {
				assert.Equal(t, read[secret], slices.Contains(declared, secret), "%s %s: read, and declared in Needs", name, secret)
			}
		}
	}
}

// TestWhoHandlesEventsIsGivenTheKey: on a cluster a function without it refuses to start.
func TestWhoHandlesEventsIsGivenTheKey(t *testing.T) {
	t.Parallel()
	for name, entry := range entries(t) {
		if len(entry.Spec.Consumes)+len(entry.Spec.Emits) > 0 {
			require.Contains(t, entry.Spec.Secrets(), "EVENT_KEY", name)
			require.Contains(t, entry.Spec.Secrets(), "EVENT_KEY_FORMER", name)
		}
	}
}

// noSecrets are settings whose names look like those of secrets.
var noSecrets = map[string]string{
	"KNATIVE_TOKENS":   "is a directory",
	"KUBERNETES_TOKEN": "comes from the Secret of the ServiceAccount",
}

// TestEverySecretSettingIsAPartOfSomeNeed: otherwise no function would be given it.
func TestEverySecretSettingIsAPartOfSomeNeed(t *testing.T) {
	t.Parallel()
	tag := regexp.MustCompile(`envconfig:"([A-Z0-9_]*(?:TOKEN|SECRET|PASSWORD|KEY|AUTHORIZATION|CREDENTIAL)[A-Z0-9_]*)"`)
	found := 0
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
				found++
				if noSecrets[name[1]] == "" {
					require.Contains(t, function.AllSecrets(), name[1], "of %s", p.folder())
				}
			}
		}
	}
	require.Positive(t, found)
}
