package cli

import (
	"strconv"

	"github.com/littoral-project/littoral/shared/api"
)

type moveCommand struct {
	appArgument
	To   string `xor:"where" placeholder:"NAME" complete:"controller" help:"The controller that is to have it."`
	Any  bool   `xor:"where" help:"The controller that offers most."`
	Home bool   `xor:"where" help:"Back to the controller that it was submitted to."`

	outputFlag
}

// Help is the long help of move.
func (moveCommand) Help() string {
	return "It goes on by itself: see get handovers, and events. At no moment do two controllers act on the application.\n\n" +
		"Example: littoral move hello --to harbour"
}

// Run begins a hand-over.
func (c *moveCommand) Run(s *session) error {
	h, err := c.move(s)
	if err != nil {
		return err
	}
	if done, err := s.said(h, "app/"+h.Application); done || !s.wide() {
		return err
	}
	l := s.handovers()
	return l.printRows(l.table(s), []api.Handover{*h})
}

// move begins the hand-over and tells people so.
func (c *moveCommand) move(s *session) (*api.Handover, error) {
	if c.To == "" && !c.Any && !c.Home {
		return nil, usagef("say where to: --to NAME, --any or --home")
	}
	a, err := s.application(s.ctx, c.ID)
	if err != nil {
		return nil, err
	}
	var h *api.Handover
	if c.Home {
		h, err = s.client.BringHome(s.ctx, a.ID)
	} else {
		h, err = s.client.HandOver(s.ctx, a.ID, bare("controller", c.To))
	}
	if err != nil {
		return nil, err
	}
	s.screen.line("application %s: %s (%s, controller epoch %d)", a.Name, h.State, or(h.Peer), h.Epoch)
	return h, nil
}

type getHandovers struct{ listFlags }

// Help is the long help of get handovers.
func (getHandovers) Help() string {
	return "The applications that were handed over to another controller, or by one. Example: littoral get handovers"
}

// Run lists hand-overs.
func (c *getHandovers) Run(s *session) error {
	l := s.handovers()
	l.watch = c.Watch
	return l.run(s)
}

func (s *session) handovers() *listing[api.Handover] {
	l := &listing[api.Handover]{
		what: "hand-overs", kind: "app",
		fetch:  s.client.Handovers,
		key:    func(h api.Handover) string { return h.Application },
		header: []string{"APP", "SIDE", "STATE", "CONTROLLER", "EPOCH", "CHANGED"},
		row: func(h api.Handover) []string {
			return []string{shortID(h.Application), h.Side, h.State, or(h.Peer), strconv.FormatInt(h.Epoch, 10), s.age(h.ChangedAt)}
		},
		steady: []int{0, 1, 2, 3, 4},
		gone:   func(h *api.Handover) { h.State = gone },
	}
	if s.wide() {
		l.header = append(l.header, "REASON")
		narrow := l.row
		l.row = func(h api.Handover) []string {
			row := append(narrow(h), or(h.Reason))
			row[0] = h.Application
			return row
		}
	}
	return l
}
