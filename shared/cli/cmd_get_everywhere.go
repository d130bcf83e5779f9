package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/littoral-project/littoral/shared/api"
)

// everywhere is one element of "get apps -A -o json".
type everywhere struct {
	Controller   string            `json:"controller"`
	Address      string            `json:"address"`
	Error        string            `json:"error,omitempty"` // why it did not answer; its applications are unknown then
	Applications []api.Application `json:"applications"`
}

// everywhere lists the applications of all controllers that the lighthouse knows, which are asked at the same time. One that does not
// answer within the deadline is shown as such.
func (c *getApps) everywhere(s *session) error {
	switch {
	case c.Watch, c.ID != "", c.Output == asDescriptor:
		return usagef("--all-controllers lists; it does not go with an ID, --watch or -o descriptor")
	case c.Deadline <= 0:
		return usagef("--deadline must be more than 0, not %s", c.Deadline)
	}
	known, err := s.client.Controllers(s.ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.ctx, c.Deadline)
	defer cancel()
	answers := make([]everywhere, len(known))
	var asked sync.WaitGroup
	for i, k := range known {
		asked.Go(func() { answers[i] = c.of(ctx, s, k) })
	}
	asked.Wait()
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	return c.showEverywhere(s, answers)
}

// of asks one controller.
func (c *getApps) of(ctx context.Context, s *session, k api.Controller) everywhere {
	found := everywhere{Controller: k.Name, Address: k.Address, Applications: []api.Application{}}
	filter := api.Filter{Orchestrator: c.Orchestrator, App: c.App, Health: c.Health, Light: !c.Output.structured()}
	peer := *s
	peer.ctx, peer.client = ctx, s.peer(k.Address)
	list, err := c.list(ctx, &peer, filter)
	switch {
	case err != nil && ctx.Err() != nil && s.ctx.Err() == nil:
		found.Error = "no answer within " + c.Deadline.String()
	case err != nil:
		found.Error = err.Error()
	default:
		found.Applications = append(found.Applications, list...)
	}
	return found
}

// peer is a client of another controller. Only the tokens of its own login or context go there: others are nobody's business.
func (s *session) peer(address string) *api.Client {
	if !strings.Contains(address, "://") {
		address = "http://" + address // as ICOS writes it
	}
	if strings.TrimRight(address, "/") == strings.TrimRight(s.client.Base, "/") {
		return s.client
	}
	other := *s
	other.client = &api.Client{Base: address, HTTP: s.client.HTTP}
	other.client.Token = other.loginSource()
	if all, err := s.contexts(); err == nil {
		for _, known := range all.List {
			if known.Server == address && known.TokenFile != "" {
				other.client.Token = api.TokenFile(known.TokenFile)
			}
		}
	}
	return other.client
}

func (c *getApps) showEverywhere(s *session, answers []everywhere) error {
	silent := false
	var rows [][]string
	for i := range answers {
		e := &answers[i]
		if e.Error != "" {
			silent = true
			rows = append(rows, []string{e.Controller, "-", "-", "Unknown", "-", "-", "-"})
			fmt.Fprintf(s.err, "littoral: controller %s: %s\n", printable(e.Controller), printable(e.Error))
		}
		for k := range e.Applications {
			a := &e.Applications[k]
			if c.Output == asName {
				fmt.Fprintln(s.out, "app/"+a.ID)
			}
			rows = append(rows, []string{e.Controller, a.Name, shortID(a.ID), a.Status, or(a.Health), ready(a), s.age(a.CreatedAt)})
		}
	}
	err := c.write(s, answers, rows)
	if err == nil && silent {
		return errQuiet // what was said is not all
	}
	return err
}

func (c *getApps) write(s *session, answers []everywhere, rows [][]string) error {
	switch {
	case c.Output.structured():
		return s.print(c.Output, answers)
	case c.Output == asName:
		return nil
	case len(rows) == 0:
		_, err := fmt.Fprintf(s.err, "No applications at %d controllers.\n", len(answers))
		return err
	}
	return s.newTable("CONTROLLER", "NAME", "ID", "STATUS", "HEALTH", "READY", "AGE").write(rows...)
}
