package cli

import (
	"errors"
	"os"
	"os/exec"
)

// become runs the program and ends with it: a process cannot be replaced here.
func become(path string, args, env []string) error {
	cmd := exec.Command(path, args[1:]...) //nolint:noctx // it ends with this process
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	if err == nil {
		os.Exit(0)
	}
	return err
}
