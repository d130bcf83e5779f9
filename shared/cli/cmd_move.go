package cli

import (
	"strconv"

	"github.com/littoral-project/littoral/shared/api"
)

type moveCommand struct {
	ID   string `arg:"" help:"Application: id, beginning of its id, or name."`
	To   string `xor:"where" placeholder:"NAME" help:"The controller that is to have it."`
	Any  bool   `xor:"where" help:"The controller that offers most."`
	Home bool   `xor:"where" help:"Back to the controller that it was submitted to."`

	Output format `short:"o" enum:"${formats}" default:"table" help:"How to show the hand-over: ${enum}."`
}

// Help is the long help of move.
func (moveCommand) Help() string {
	return "It goes on by itself: see get handovers, and events. At no moment do two controllers act on the application.\n\n" +
		"Example: littoral move hello --to harbour"
}

// Run begins a hand-over.
func (c *moveCommand) Run(s *session) error {
	if c.To == "" && !c.Any && !c.Home {
		return usagef("say where to: --to NAME, --any or --home")
	}
	a, err := s.application(s.ctx, c.ID)
	if err != nil {
		return err
	}
	var h *api.Handover
	if c.Home {
		h, err = s.client.BringHome(s.ctx, a.ID)
	} else {
		h, err = s.client.HandOver(s.ctx, a.ID, c.To)
	}
	if err != nil {
		return err
	}
	if done, err := s.said(c.Output, "app", a.ID, h); done {
		return err
	}
	s.screen.line("application %s: %s (%s, controller epoch %d)", a.Name, h.State, or(h.Peer), h.Epoch)
	return nil
}

type getHandovers struct{ listFlags }

// Help is the long help of get handovers.
func (getHandovers) Help() string {
	return "The applications that were handed over to another controller, or by one. Example: littoral get handovers"
}

// Run lists hand-overs.
func (c *getHandovers) Run(s *session) error {
	l := listing[api.Handover]{
		format: c.Output, watch: c.Watch, what: "hand-overs", kind: "app",
		fetch:  s.client.Handovers,
		key:    func(h api.Handover) string { return h.Application },
		header: []string{"APP", "SIDE", "STATE", "CONTROLLER", "EPOCH", "CHANGED"},
		row: func(h api.Handover) []string {
			return []string{shortID(h.Application), h.Side, h.State, or(h.Peer), strconv.FormatInt(h.Epoch, 10), s.age(h.ChangedAt)}
		},
		steady: []int{0, 1, 2, 3, 4},
		gone:   func(h *api.Handover) { h.State = gone },
	}
	if c.Output == asWide {
		l.header = append(l.header, "REASON")
		narrow := l.row
		l.row = func(h api.Handover) []string { return append(narrow(h), or(h.Reason)) }
	}
	return l.run(s)
}
