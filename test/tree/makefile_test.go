package tree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestThePathMayHoldSpaces: a space ends the name of a target in make, and an argument in a shell.
func TestThePathMayHoldSpaces(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "with a space")
	for _, name := range []string{
		"Makefile", "scripts/tools/go.mod", "scripts/tools/ko/go.mod", "scripts/tools/ko/build.sh", "scripts/tools/s3/go.mod",
		"scripts/tools/s3/build.sh", "scripts/tools/telemetry/go.mod", "scripts/tools/telemetry/build.sh",
		"scripts/tools/openapi/go.mod", "scripts/tools/openapi/build.sh", "scripts/tools/vulncheck/go.mod",
		"scripts/tools/vulncheck/build.sh", "scripts/tools/collector/go.mod", "scripts/tools/collector/manifest.yaml",
		"scripts/tools/collector/build.sh", "scripts/tools/collector/.ko.yaml",
		"scripts/tools/collector/compressedstorage/compressedstorage.go",
		"scripts/tools/nodeexporter/go.mod", "scripts/tools/nodeexporter/build.sh",
		"scripts/tools/victorialogs/go.mod", "scripts/tools/victorialogs/build.sh",
	} {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)) // as a clone has it
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	for target, want := range map[string]string{
		"bin/tools/ko":                   `scripts/tools/ko/build.sh "` + dir + `/bin/tools"`,
		"bin/tools/s3/versitygw":         `scripts/tools/s3/build.sh "` + dir + `/bin/tools/s3"`,
		"bin/tools/govulncheck":          `scripts/tools/vulncheck/build.sh "` + dir + `/bin/tools"`,
		"bin/tools/oapi-codegen":         `scripts/tools/openapi/build.sh "` + dir + `/bin/tools"`,
		"bin/tools/telemetry/prometheus": `scripts/tools/telemetry/build.sh "` + dir + `/bin/tools/telemetry"`,
		"e2e-collector":                  `LITTORAL_COLLECTOR="` + dir + `/bin/tools/collector/littoral-collector" `,
		"collector-image":                `KO="` + dir + `/bin/tools/ko" `,
		"e2e-s3":                         `LITTORAL_S3_SERVER="` + dir + `/bin/tools/s3/versitygw" `,
		"e2e-telemetry":                  `LITTORAL_TELEMETRY_TOOLS="` + dir + `/bin/tools/telemetry" `,
		"lint":                           "\nbin/tools/golangci-lint run ./...",
	} {
		make := exec.Command("make", "--dry-run", "--no-print-directory", "-C", dir, target)
		make.Env = append(os.Environ(), "MAKEFLAGS=") // of the make that runs this test
		out, err := make.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.NotContains(t, string(out), "warning")
		require.Contains(t, string(out), want)
	}
}
