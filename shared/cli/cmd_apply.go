package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/problem"
)

type applyCommand struct {
	File    []string      `short:"f" required:"" placeholder:"FILE" help:"Descriptor; - is standard input. Repeatable."`
	App     string        `xor:"which" placeholder:"ID" help:"Application to update; default: the only one of its name, else a new one."`
	New     bool          `xor:"which" help:"Always make a new application, also when one has the name."`
	Strict  bool          `help:"Refuse a descriptor with warnings."`
	Wait    bool          `short:"w" help:"Show what happens until it is available."`
	Timeout time.Duration `default:"5m" help:"How long --wait waits."`
}

// Run applies one file after the other and stops at the first that fails.
func (c *applyCommand) Run(s *session) error {
	if err := checkTimeout(c.Timeout); err != nil {
		return err
	}
	if c.App != "" && len(c.File) > 1 {
		return usagef("--app names one application, so there can be one file only")
	}
	for i, file := range c.File {
		err := c.one(s, file)
		if err == nil {
			continue
		}
		if len(c.File) > 1 {
			fmt.Fprintf(s.err, "littoral: %s was not applied\n", file)
		}
		if left := c.File[i+1:]; len(left) > 0 {
			fmt.Fprintf(s.err, "littoral: not tried after it: %s\n", strings.Join(left, ", "))
		}
		return err
	}
	return nil
}

func (c *applyCommand) one(s *session, file string) error {
	document, err := s.document(file)
	if err != nil {
		return err
	}
	a, after, err := c.handIn(s, document)
	if err != nil || !c.Wait {
		return err
	}
	ctx, cancel := context.WithTimeout(s.ctx, c.Timeout)
	defer cancel()
	return s.follow(ctx, a.ID, after, available)
}

// handIn creates or updates the application and says which. after is the id of the last history entry before that.
func (c *applyCommand) handIn(s *session, document []byte) (a *api.Application, after int64, err error) {
	existing, err := c.existing(s, document)
	if err != nil {
		return nil, 0, err
	}
	if existing == nil {
		create := s.client.CreateFirst
		if c.New {
			create = s.client.CreateApplication
		}
		if a, err = create(s.ctx, document, api.NewKey(), c.Strict); err == nil {
			s.warn(a.Warnings)
			s.screen.line("application %s created: %s", a.Name, a.ID)
			return a, 0, nil
		}
		if problem.KindOf(err) != problem.PreconditionFailed {
			return nil, 0, err
		}
		made, again := c.existing(s, document) // somebody else may have created it at the same moment
		if again != nil || made == nil {
			return nil, 0, cmp.Or(again, err)
		}
		existing = made
	}
	newest, err := s.client.History(s.ctx, api.HistoryQuery{App: existing.ID, After: -1, Limit: 1})
	if err != nil {
		return nil, 0, err
	}
	if len(newest) == 1 {
		after = newest[0].ID
	}
	if a, err = s.client.UpdateApplication(s.ctx, existing.ID, document, c.Strict); err != nil {
		return nil, 0, err
	}
	s.warn(a.Warnings)
	done := "updated"
	if a.Version == existing.Version {
		done = "unchanged"
	}
	if a.Desired == "stopped" {
		done += " (it is stopped)"
	}
	s.screen.line("application %s %s: %s", a.Name, done, a.ID)
	return a, after, nil
}

// existing returns the application that the user named, else the only one with the descriptor's name, nil when there is
// none. A descriptor that cannot be read has none: the server explains better what is wrong with it.
func (c *applyCommand) existing(s *session, document []byte) (*api.Application, error) {
	switch {
	case c.New:
		return nil, nil
	case c.App != "":
		return s.application(s.ctx, c.App)
	}
	header, err := descriptor.ParseHeader(document)
	if err != nil || header.Name == "" {
		return nil, nil
	}
	found, err := s.client.Applications(s.ctx, api.Filter{App: header.Name})
	if err != nil {
		return nil, err
	}
	switch {
	case len(found) == 0:
		return nil, nil
	case len(found) > 1:
		return nil, advise(fmt.Errorf("there are %d applications named %q", len(found), header.Name),
			"Make another with: littoral submit; or name the one to update: littoral apply --app ID\n  %s", choice(found))
	case found[0].Desired == "deleted":
		return nil, advise(errors.New("the application of that name is being deleted"),
			"Wait until it is gone: littoral wait app %s --for=deleted; or make another now with: littoral submit", found[0].ID)
	}
	return &found[0], nil
}

// submitCommand is apply --new.
type submitCommand struct {
	File    []string      `short:"f" required:"" placeholder:"FILE" help:"Descriptor; - is standard input. Repeatable."`
	Strict  bool          `help:"Refuse a descriptor with warnings."`
	Wait    bool          `short:"w" help:"Show what happens until it is available."`
	Timeout time.Duration `default:"5m" help:"How long --wait waits."`
}

// Run applies with --new.
func (c *submitCommand) Run(s *session) error {
	apply := applyCommand{File: c.File, New: true, Strict: c.Strict, Wait: c.Wait, Timeout: c.Timeout}
	return apply.Run(s)
}
