package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

type upCommand struct {
	Args []string `arg:"" optional:"" help:"Arguments of littoral-up; see: littoral up --help."`
}

// host is the program that "up" becomes. It is a program of its own so that the command line stays small.
const host = "littoral-up"

// Run replaces this process with the laptop host, so signals reach it as if it had been started itself.
func (c *upCommand) Run(s *session) error {
	path, err := beside(host)
	if err != nil {
		return err
	}
	if err := c.remember(s); err != nil {
		s.warn([]string{"no context was written: " + err.Error()})
	}
	if err := s.exec(path, append([]string{host}, c.Args...), os.Environ()); err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	return nil
}

// laptop is the context of the host that was started last on this machine.
const laptop = "laptop"

// remember writes the context of the host, which does not become the one in use: within the directory of its home commands find it
// anyway.
func (c *upCommand) remember(s *session) error {
	home := s.home()
	for i, arg := range c.Args {
		switch value, ok := strings.CutPrefix(arg, "--home="); {
		case ok:
			home = value
		case arg == "--home" && i+1 < len(c.Args):
			home = c.Args[i+1]
		case arg == "--help" || arg == "-h":
			return nil
		}
	}
	home, err := filepath.Abs(home)
	if err != nil {
		return err
	}
	all, err := s.contexts()
	if err != nil || all.path == "" {
		return err
	}
	all.set(contextItem{Name: laptop, Home: home})
	return all.save()
}

// beside looks for a program of ours beside this one, where a build puts it, and then in PATH.
func beside(program string) (string, error) {
	if self, err := os.Executable(); err == nil {
		if self, err = filepath.EvalSymlinks(self); err == nil {
			beside := filepath.Join(filepath.Dir(self), program)
			if found, err := exec.LookPath(beside); err == nil { // which knows what makes a program on each system
				return found, nil
			}
		}
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return "", advise(errors.New(program+" is neither beside this program nor in PATH"), "Build it with: make build")
	}
	return path, nil
}
