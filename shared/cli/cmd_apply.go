package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/problem"
)

type applyCommand struct {
	File   []string `short:"f" required:"" placeholder:"FILE" help:"Descriptor; - is standard input. Repeatable."`
	App    string   `xor:"which" placeholder:"ID" complete:"app" help:"Application to update; default: the only one of its name, else a new one."`
	New    bool     `xor:"which,fresh" help:"Always make a new application, also when one has the name."`
	Strict bool     `help:"Refuse a descriptor with warnings."`
	waitFlags
	outputFlag

	Controller string `xor:"elsewhere" placeholder:"NAME" help:"Hand it over to this controller, or to any; see littoral move."`

	AutoRollback bool `xor:"fresh,elsewhere" help:"Go back to the former descriptor if it is not available in time; waits."`
}

// Run applies one file after the other and stops at the first that fails.
func (c *applyCommand) Run(s *session) error {
	if err := checkTimeout(c.Timeout); err != nil {
		return err
	}
	if c.App != "" && len(c.File) > 1 {
		return usagef("--app names one application, so there can be one file only")
	}
	if c.Controller != "" && c.Wait {
		return usagef("--wait follows an application here, and --controller gives it away; see: littoral get apps -o wide")
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
	a, before, after, err := c.handIn(s, document)
	switch {
	case err != nil:
		return err
	case c.Controller != "":
		move := moveCommand{appArgument: appArgument{a.ID}, To: c.Controller}
		if c.Controller == anyController {
			move.To, move.Any = "", true
		}
		if _, err := move.move(s); err != nil {
			return err
		}
		return s.result(a.ID)
	case !c.Wait && !c.AutoRollback:
		return s.result(a.ID)
	}
	ctx, cancel := context.WithTimeout(s.ctx, c.Timeout)
	defer cancel()
	err = s.follow(ctx, a.ID, after, available)
	switch {
	case err == nil:
		return s.result(a.ID)
	case !c.AutoRollback || s.ctx.Err() != nil:
		return err
	}
	return c.goBack(s, a, before, err)
}

// goBack gives the application the descriptor that it had before, if that was available, and waits for it. The command has failed
// all the same.
func (c *applyCommand) goBack(s *session, a, before *api.Application, failed error) error {
	switch {
	case before == nil:
		return advise(failed, "It is new, so there is no descriptor to go back to. See: littoral describe app %s", a.Name)
	case before.Version == a.Version:
		return failed
	case before.Status != availableStatus:
		return advise(failed, "It was %s before, so it was not rolled back. See: littoral history %s", before.Status, a.Name)
	}
	if !errors.Is(failed, errQuiet) {
		fmt.Fprintf(s.err, "littoral: %s\n", s.explain(failed))
	}
	newest, err := s.client.History(s.ctx, api.HistoryQuery{App: a.ID, After: -1, Limit: 1})
	if err != nil {
		return err
	}
	if _, err := s.client.RollBack(s.ctx, a.ID, before.Version); err != nil {
		return err
	}
	s.screen.line("application %s rolled back to revision %d", a.Name, before.Version)
	after := int64(0)
	if len(newest) == 1 {
		after = newest[0].ID
	}
	ctx, cancel := context.WithTimeout(s.ctx, c.Timeout)
	defer cancel()
	if err := s.follow(ctx, a.ID, after, available); err != nil {
		return err
	}
	return errQuiet
}

// anyController stands for the controller that offers most.
const anyController = "any"

// availableStatus is that of an application all of which runs.
const availableStatus = "Available"

// handIn creates or updates the application and says which. before is what it was, nil for a new one; after the id of the last
// history entry before that.
func (c *applyCommand) handIn(s *session, document []byte) (a, before *api.Application, after int64, err error) {
	existing, err := c.existing(s, document)
	if err != nil {
		return nil, nil, 0, err
	}
	if existing == nil {
		create := s.client.CreateFirst
		if c.New {
			create = s.client.CreateApplication
		}
		if a, err = create(s.ctx, document, api.NewKey(), c.Strict); err == nil {
			s.warn(a.Warnings)
			s.screen.line("application %s created: %s", a.Name, a.ID)
			return a, nil, 0, nil
		}
		if problem.KindOf(err) != problem.PreconditionFailed {
			return nil, nil, 0, err
		}
		made, again := c.existing(s, document) // somebody else may have created it at the same moment
		if again != nil || made == nil {
			return nil, nil, 0, cmp.Or(again, err)
		}
		existing = made
	}
	newest, err := s.client.History(s.ctx, api.HistoryQuery{App: existing.ID, After: -1, Limit: 1})
	if err != nil {
		return nil, nil, 0, err
	}
	if len(newest) == 1 {
		after = newest[0].ID
	}
	if a, err = s.client.UpdateApplication(s.ctx, existing.ID, document, c.Strict); err != nil {
		return nil, nil, 0, err
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
	return a, existing, after, nil
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
	header, err := descriptor.ParseHeader(document, nil)
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
	File   []string `short:"f" required:"" placeholder:"FILE" help:"Descriptor; - is standard input. Repeatable."`
	Strict bool     `help:"Refuse a descriptor with warnings."`
	waitFlags
	outputFlag
}

// Run applies with --new.
func (c *submitCommand) Run(s *session) error {
	apply := applyCommand{File: c.File, New: true, Strict: c.Strict, waitFlags: c.waitFlags}
	return apply.Run(s)
}
