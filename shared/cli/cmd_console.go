package cli

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
)

type consoleCommand struct {
	Print bool `help:"Print the address instead of opening it."`
}

// Run opens the console in the desktop's browser, signed in with the token of the command line. The token stands behind
// "#": a browser sends that part of an address to nobody, and the console takes it out of the address bar.
func (c *consoleCommand) Run(s *session) error {
	address := strings.TrimRight(s.client.Base, "/") + "/console/"
	if s.client.Token != nil {
		token, err := s.client.Token()
		if err != nil {
			return err
		}
		address += "#token=" + token
	}
	if !c.Print {
		if err := s.open(s.ctx, address); err == nil {
			_, err = fmt.Fprintln(s.out, "The console opens in the browser.")
			return err
		}
	}
	_, err := fmt.Fprintln(s.out, address)
	return err
}

// openBrowser asks the desktop to open the address.
func openBrowser(ctx context.Context, address string) error {
	switch runtime.GOOS {
	case "darwin":
		return exec.CommandContext(ctx, "open", address).Run()
	case "windows":
		return exec.CommandContext(ctx, "rundll32", "url.dll,FileProtocolHandler", address).Run()
	}
	return exec.CommandContext(ctx, "xdg-open", address).Run()
}
