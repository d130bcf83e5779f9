package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/signin"
)

type loginCommand struct {
	Browser           bool   `xor:"how" help:"Sign in by a browser on this machine, instead of by a code."`
	ClientCredentials bool   `xor:"how" help:"Sign in as a machine: LITTORAL_CLIENT_ID and LITTORAL_CLIENT_SECRET."`
	Issuer            string `help:"The issuer, if the server does not say." placeholder:"URL"`
	ClientID          string `help:"The issuer's client for the command line, if the server does not say." placeholder:"ID"`
}

// Help has an example.
func (c *loginCommand) Help() string {
	return `Signs in at the issuer that the server names, and keeps the tokens in the keyring of the desktop where one answers, else in a
file of mode 0600, from which all commands for this server take and renew them.

Example: littoral login --browser`
}

// Run signs in and keeps the tokens.
func (c *loginCommand) Run(s *session) error {
	client, err := c.client(s)
	if err != nil {
		return err
	}
	var l *signin.Login
	switch {
	case c.ClientCredentials:
		l, err = signin.Machine(s.ctx, s.client.HTTP, client)
	case c.Browser:
		l, err = signin.Browser(s.ctx, s.client.HTTP, client, func(address string) {
			if s.open(s.ctx, address) == nil {
				fmt.Fprintln(s.err, "Sign in in the browser that opens.")
				return
			}
			fmt.Fprintf(s.err, "Open this in a browser on this machine:\n\n  %s\n\n", printable(address))
		})
	default:
		l, err = signin.Device(s.ctx, s.client.HTTP, client, func(address, code string) {
			fmt.Fprintf(s.err, "Open this in any browser, and compare the code %s:\n\n  %s\n\n", printable(code), printable(address))
		})
	}
	if err != nil {
		return err
	}
	s.client.Token = api.StaticToken(l.Access)
	who, err := s.client.Session(s.ctx)
	if err != nil {
		return err
	}
	if !who.SignedIn {
		return advise(fmt.Errorf("the server does not take the issuer's token: %s", who.Refused),
			"The issuer must give tokens for the audience that the server expects")
	}
	if err := s.logins().Set(s.client.Base, l); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.out, "Signed in as %s.\n", named(who))
	return err
}

func (c *loginCommand) client(s *session) (signin.Client, error) {
	client := signin.Client{Issuer: c.Issuer, ID: c.ClientID}
	if c.Issuer == "" || c.ClientID == "" || c.ClientCredentials {
		told, err := s.client.Provider(s.ctx)
		if err != nil {
			return client, err
		}
		client.Issuer, client.ID = cmp.Or(c.Issuer, told.Issuer), cmp.Or(c.ClientID, told.ClientID)
		client.Scopes, client.Audience = told.Scopes, told.Audience
	}
	if client.Issuer == "" {
		return client, advise(errors.New("the server names no issuer"), "Name one with --issuer")
	}
	if c.ClientCredentials {
		client.ID, client.Secret = s.getenv("LITTORAL_CLIENT_ID"), s.getenv("LITTORAL_CLIENT_SECRET")
		if client.ID == "" || client.Secret == "" {
			return client, usagef("--client-credentials needs LITTORAL_CLIENT_ID and LITTORAL_CLIENT_SECRET")
		}
	}
	return client, nil
}

type logoutCommand struct{}

// Help has an example.
func (c *logoutCommand) Help() string { return "Example: littoral logout" }

// Run forgets the tokens, and tells the issuer so.
func (c *logoutCommand) Run(s *session) error {
	l, err := s.logins().Get(s.client.Base)
	if err != nil {
		return err
	}
	if l == nil {
		_, err := fmt.Fprintf(s.out, "Nobody is signed in to %s.\n", s.client.Base)
		return err
	}
	if err := s.logins().Set(s.client.Base, nil); err != nil {
		return err
	}
	if err := signin.Revoke(s.ctx, s.client.HTTP, l); err != nil {
		fmt.Fprintf(s.err, "littoral: the issuer was not told: %s\n", printable(err.Error()))
	}
	_, err = fmt.Fprintf(s.out, "Signed out of %s.\n", s.client.Base)
	return err
}

type whoamiCommand struct {
	Output format `short:"o" enum:"table,json,yaml" default:"table" help:"How to show it: table, json or yaml."`
}

// Help has an example.
func (c *whoamiCommand) Help() string { return "Example: littoral whoami -o json" }

// Run shows who the server takes the caller for.
func (c *whoamiCommand) Run(s *session) error {
	who, err := s.client.Session(s.ctx)
	if err != nil {
		return err
	}
	if c.Output.structured() {
		return s.print(c.Output, who)
	}
	if !who.SignedIn {
		why := "No access token was sent"
		if who.Refused != "" {
			why = who.Refused
		}
		return advise(fmt.Errorf("nobody is signed in: %s", why), "Sign in with: littoral login")
	}
	lines := []string{named(who)}
	if who.Expires != nil {
		lines = append(lines, fmt.Sprintf("until %s (in %s)", who.Expires.Local().Format("2006-01-02 15:04:05 MST"),
			who.Expires.Sub(s.now()).Round(time.Second)))
	}
	lines = append(lines, "by "+s.token, "at "+who.Issuer)
	_, err = fmt.Fprintln(s.out, strings.Join(lines, "\n"))
	return err
}

// named is a person with the roles.
func named(who *api.Session) string {
	roles := strings.Join(who.Roles, ", ")
	if roles == "" {
		roles = "no role"
	}
	text := fmt.Sprintf("%s (%s)", printable(cmp.Or(who.Name, who.Subject)), roles)
	if who.Agent != "" {
		text += ", as the agent " + printable(who.Agent)
	}
	return text
}

// logins is the file with what "littoral login" keeps.
func (s *session) logins() signin.File {
	dir := s.getenv("XDG_CONFIG_HOME")
	if home := s.getenv("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, ".config")
	}
	if dir == "" {
		return signin.File{}
	}
	return signin.File{Path: filepath.Join(dir, "littoral", "logins.json"), Keys: s.keys()}
}

// loginSource is the token source of a login; nil when there is none for the server.
func (s *session) loginSource() func() (string, error) {
	file := s.logins()
	if l, err := file.Get(s.client.Base); err == nil && l == nil {
		return nil
	}
	return func() (string, error) {
		token, err := file.Token(context.WithoutCancel(s.ctx), s.client.HTTP, s.client.Base, s.now)
		if errors.Is(err, signin.ErrOver) {
			return "", advise(err, "Sign in again with: littoral login")
		}
		return token, err
	}
}
