package main

import (
	"context"
	"os"

	"github.com/littoral-project/littoral/infra/runner/host"
	"github.com/littoral-project/littoral/shared/cli"
)

// apply does what "littoral apply --wait" does, over the public API. A failure is shown and the host serves on: the
// file may be mended and applied again.
func apply(ctx context.Context, h *host.Host, file string) {
	sh := cli.Shell{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: func(string) string { return "" }, // flags say it all
	}
	code := sh.Run(ctx, []string{
		"--server", h.URL(), "--token-file", h.TokenFile("operator"), "apply", "--wait", "--file", file,
	})
	if code != 0 && ctx.Err() == nil {
		say("%s was not applied, or is not available yet", file)
	}
}
