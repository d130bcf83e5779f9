package host

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/littoral-project/littoral/infra/runner/fleet"
	"github.com/littoral-project/littoral/shared/auth"
)

// leafAgent is what telemetry calls the agent of this machine. There is none that takes work, so the machine is shown as closed.
const leafAgent = "this-machine"

// leafEvery is between two pushes: well below the time from which a laptop's node is lost.
const leafEvery = 5 * time.Second

// startLeaf runs the real leaf exporter on this machine, so that what the fleet makes up has something measured beside it. It is begun
// again when it ends.
func (h *Host) startLeaf(context.Context) error {
	if h.options.Leaf == "" {
		return nil
	}
	program, err := exec.LookPath(h.options.Leaf)
	if err != nil {
		return fmt.Errorf("leaf: %w", err)
	}
	b := newBackground()
	h.onStop(b.stop)
	b.run(func(ctx context.Context) {
		again := time.NewTicker(leafEvery)
		defer again.Stop()
		for {
			command := exec.CommandContext(ctx, program, "serve", "--bind", "127.0.0.1:0", "--agent-id", leafAgent, "--orchestrator", "compose",
				"--controller-id", fleet.Controller, "--closed", "--otlp", h.url+prometheusPath+otlpPath, "--interval", leafEvery.String(),
				"--otlp-token-file", h.TokenFile(string(auth.Agent)))
			said := &tail{}
			command.Stderr = said
			err := command.Run()
			if ctx.Err() != nil {
				return
			}
			h.log.ErrorContext(ctx, "the leaf exporter ended", "error", fmt.Sprint(err), "output", string(said.text))
			select {
			case <-ctx.Done():
				return
			case <-again.C:
			}
		}
	})
	return nil
}

// tail keeps the end of what a program says.
type tail struct{ text []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.text = append(t.text, b...)
	t.text = append([]byte(nil), t.text[max(0, len(t.text)-500):]...)
	return len(b), nil
}
