package cli

import (
	"context"
	"fmt"
	"slices"
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
	case c.Watch, c.ID != "", s.format == asDescriptor:
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
	filter := api.Filter{Orchestrator: c.Orchestrator, App: c.App, Health: c.Health, Light: !s.format.structured()}
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
	var names []string
	l := s.apps()
	for i := range answers {
		e := &answers[i]
		if e.Error != "" {
			silent = true
			row := slices.Repeat([]string{"-"}, len(l.header))
			row[2] = "Unknown"
			rows = append(rows, append([]string{e.Controller}, row...))
			fmt.Fprintf(s.err, "littoral: controller %s: %s\n", printable(e.Controller), printable(e.Error))
		}
		for k := range e.Applications {
			rows = append(rows, append([]string{e.Controller}, l.row(e.Applications[k])...))
		}
		names = append(names, l.names(e.Applications)...)
	}
	done, err := s.said(answers, names...)
	switch {
	case done:
	case len(rows) == 0:
		_, err = fmt.Fprintf(s.err, "No applications at %d controllers.\n", len(answers))
	default:
		err = s.newTable(append([]string{"CONTROLLER"}, l.header...)...).write(rows...)
	}
	if err == nil && silent {
		return errQuiet // what was said is not all
	}
	return err
}
