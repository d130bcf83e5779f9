package cli

import (
	"fmt"
	"os"
)

type backupCommand struct {
	Args []string `arg:"" optional:"" help:"Arguments; see: littoral backup --help."`
}

type restoreCommand struct {
	Args []string `arg:"" optional:"" help:"Arguments; see: littoral restore --help."`
}

// keeper is the program that "backup" and "restore" become: it has Postgres' protocol and the client of S3, which nothing
// else in the command line needs.
const keeper = "littoral-backup"

// Run replaces this process with that program.
func (c *backupCommand) Run(s *session) error { return s.become(keeper, "backup", c.Args) }

// Run replaces this process with that program.
func (c *restoreCommand) Run(s *session) error { return s.become(keeper, "restore", c.Args) }

// become replaces this process with another program of ours.
func (s *session) become(program, command string, args []string) error {
	path, err := beside(program)
	if err != nil {
		return err
	}
	if err := s.exec(path, append([]string{program, command}, args...), os.Environ()); err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	return nil
}
