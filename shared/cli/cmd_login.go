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
	outputFlag
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
	if done, err := s.said(who, userName(who)); done {
		return err
	}
	s.text("Signed in as %s.", named(who))
	if s.wide() {
		s.tellServer(who)
	}
	return nil
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

type logoutCommand struct{ outputFlag }

// signedOut is the answer of "logout -o json".
type signedOut struct {
	Server     string `json:"server"`
	SignedOut  bool   `json:"signedOut"` // false where nobody was signed in
	Issuer     string `json:"issuer,omitempty"`
	IssuerTold bool   `json:"issuerTold"`
}

// Help has an example.
func (c *logoutCommand) Help() string {
	return "With -o name it prints the server's address.\n\nExample: littoral logout"
}

// Run forgets the tokens, and tells the issuer so.
func (c *logoutCommand) Run(s *session) error {
	l, err := s.logins().Get(s.client.Base)
	if err != nil {
		return err
	}
	done := signedOut{Server: s.client.Base, SignedOut: l != nil}
	text := "Nobody is signed in to " + done.Server
	if l != nil {
		if err := s.logins().Set(s.client.Base, nil); err != nil {
			return err
		}
		done.Issuer, done.IssuerTold = l.Client.Issuer, true
		if err := signin.Revoke(s.ctx, s.client.HTTP, l); err != nil {
			fmt.Fprintf(s.err, "littoral: the issuer was not told: %s\n", printable(err.Error()))
			done.IssuerTold = false
		}
		text = "Signed out of " + done.Server
	}
	if s.wide() && l != nil {
		text += ", whose issuer is " + done.Issuer
	}
	if shown, err := s.said(done, done.Server); shown {
		return err
	}
	s.text("%s.", text)
	return nil
}

type whoamiCommand struct {
	outputFlag
}

// Help has an example.
func (c *whoamiCommand) Help() string {
	return "With -o name it prints the name alone.\n\nExample: littoral whoami -o json"
}

// Run shows who the server takes the caller for.
func (c *whoamiCommand) Run(s *session) error {
	who, err := s.client.Session(s.ctx)
	if err != nil {
		return err
	}
	if s.format.structured() {
		return s.print(who) // which says as well that nobody is
	}
	if !who.SignedIn {
		why := "No access token was sent"
		if who.Refused != "" {
			why = who.Refused
		}
		return advise(fmt.Errorf("nobody is signed in: %s", why), "Sign in with: littoral login")
	}
	if done, err := s.said(who, userName(who)); done {
		return err
	}
	s.text("%s", named(who))
	if who.Expires != nil {
		s.text("until %s (in %s)", who.Expires.Local().Format("2006-01-02 15:04:05 MST"), who.Expires.Sub(s.now()).Round(time.Second))
	}
	s.text("by %s", s.token)
	s.text("at %s", who.Issuer)
	if s.wide() {
		s.tellServer(who)
	}
	return nil
}

// tellServer shows what only matters when something is wrong.
func (s *session) tellServer(who *api.Session) {
	s.text("subject %s", who.Subject)
	s.text("server %s", s.client.Base)
	if s.named != "" {
		s.text("context %s", s.named)
	}
}

// userName is what -o name prints of a person: the name alone, since no command takes it.
func userName(who *api.Session) string { return cmp.Or(who.Name, who.Subject) }

// named is a person with the roles.
func named(who *api.Session) string {
	roles := strings.Join(who.Roles, ", ")
	if roles == "" {
		roles = "no role"
	}
	text := fmt.Sprintf("%s (%s)", printable(userName(who)), roles)
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
