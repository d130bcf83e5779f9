package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/littoral-project/littoral/shared/api"
)

// appArgument is the ID that most commands take.
type appArgument struct {
	ID string `arg:"" complete:"app" help:"Application: id, beginning of its id, or name."`
}

type startCommand struct {
	Deployment startDeployment `cmd:"" hidden:"" help:"As ICOS' shell calls it."`

	App startApp `cmd:"" default:"withargs" aliases:"apps" help:"Ask a stopped application to run again."`
}

type startApp struct {
	appArgument
	waitFlags
	outputFlag
}

// Run starts the application.
func (c *startApp) Run(s *session) error {
	return s.change(c.ID, "running", "started", available, c.waitFlags, func(id string) error {
		_, err := s.client.StartApplication(s.ctx, id)
		return err
	})
}

type stopCommand struct {
	Deployment stopDeployment `cmd:"" hidden:"" help:"As ICOS' shell calls it."`

	App stopApp `cmd:"" default:"withargs" aliases:"apps" help:"Remove what runs of an application and keep the application."`
}

type stopApp struct {
	appArgument
	waitFlags
	outputFlag
}

// Run stops the application.
func (c *stopApp) Run(s *session) error {
	return s.change(c.ID, "stopped", "stopping", stopped, c.waitFlags, func(id string) error {
		_, err := s.client.StopApplication(s.ctx, id)
		return err
	})
}

type deleteCommand struct {
	Deployment deleteDeployment `cmd:"" hidden:"" help:"As ICOS' shell calls it."`

	App deleteApp `cmd:"" default:"withargs" aliases:"apps" help:"Stop an application and forget it."`
}

type deleteApp struct {
	appArgument
	Wait    bool          `default:"true" negatable:"" help:"Wait until it is gone (--no-wait does not)."`
	Timeout time.Duration `default:"5m" help:"How long it waits."`
	outputFlag
}

// Run deletes the application; what runs of it is stopped first.
func (c *deleteApp) Run(s *session) error {
	if err := checkTimeout(c.Timeout); err != nil {
		return err
	}
	a, after, err := s.before(c.ID)
	if err != nil {
		return err
	}
	now, gone, err := s.client.DeleteApplication(s.ctx, a.ID, true)
	switch {
	case err != nil:
		return err
	case gone:
		s.screen.line("application %s %s: %s", a.Name, now.Message, a.ID)
		return s.wasDeleted(now)
	case a.Desired == "deleted":
		s.screen.line("application %s still being removed: %s", a.Name, a.ID)
	default:
		s.screen.line("application %s stopping, to be deleted: %s", a.Name, a.ID)
	}
	if c.Wait {
		if err := s.followFor(c.Timeout, a.ID, after, deleted); err != nil {
			return err
		}
	}
	return s.wasDeleted(now)
}

// wasDeleted shows an application as it was, to programs; people have seen what became of it.
func (s *session) wasDeleted(a *api.Application) error {
	_, err := s.said(a, "app/"+a.ID)
	return err
}

// change asks for the named application to be as desired, reports it, and waits for it on request.
func (s *session) change(
	named, desired, done string, g goal, wait waitFlags, apply func(id string) error,
) error {
	if err := checkTimeout(wait.Timeout); err != nil {
		return err
	}
	a, after, err := s.before(named)
	if err != nil {
		return err
	}
	if err := apply(a.ID); err != nil {
		return err
	}
	if a.Desired == desired {
		done = "unchanged"
	}
	s.screen.line("application %s %s: %s", a.Name, done, a.ID)
	if wait.Wait {
		if err := s.followFor(wait.Timeout, a.ID, after, g); err != nil {
			return err
		}
	}
	return s.result(a.ID)
}

// before returns the named application and the id of its last history entry.
func (s *session) before(named string) (a *api.Application, after int64, err error) {
	if a, err = s.application(s.ctx, named); err != nil {
		return nil, 0, err
	}
	newest, err := s.client.History(s.ctx, api.HistoryQuery{App: a.ID, After: -1, Limit: 1})
	if err != nil {
		return nil, 0, err
	}
	if len(newest) == 1 {
		after = newest[0].ID
	}
	return a, after, nil
}

// checkTimeout is called before anything is changed.
func checkTimeout(timeout time.Duration) error {
	if timeout <= 0 {
		return usagef("--timeout must be more than 0, not %s", timeout)
	}
	return nil
}

func (s *session) followFor(timeout time.Duration, id string, after int64, g goal) error {
	ctx, cancel := context.WithTimeout(s.ctx, timeout)
	defer cancel()
	return s.follow(ctx, id, after, g)
}

type waitCommand struct {
	App waitApp `cmd:"" default:"withargs" aliases:"apps" help:"Wait until an application is as you want it."`
}

type waitApp struct {
	appArgument
	For     string        `default:"available" enum:"${goals}" help:"What to wait for: ${goals}."`
	Timeout time.Duration `default:"5m" help:"How long to wait."`
	outputFlag
}

// Run waits; an application that is gone already counts as deleted.
func (c *waitApp) Run(s *session) error {
	g := map[string]goal{"available": available, "finished": finished, "stopped": stopped, "deleted": deleted}[c.For]
	a, after, err := s.before(c.ID)
	if err != nil {
		if c.For == "deleted" && missing(err) {
			s.screen.line("deleted     %s: there is no such application", c.ID)
			return nil
		}
		return err
	}
	if err := checkTimeout(c.Timeout); err != nil {
		return err
	}
	if err := s.followFor(c.Timeout, a.ID, after, g); err != nil {
		return fmt.Errorf("wait for %s: %w", a.Name, err)
	}
	if c.For == "deleted" {
		return s.wasDeleted(a)
	}
	return s.result(a.ID)
}
