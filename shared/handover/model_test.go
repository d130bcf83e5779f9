package handover_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/handover"
	"github.com/littoral-project/littoral/shared/store"
)

// The protocol of a move as a machine of small numbers, of which every state can be visited. Time goes in ticks.

const (
	leaseTicks  = 2
	marginTicks = 1
	lastEpoch   = 3 // as far as the states are visited
)

// exchange is a claim under way and, if it was answered, its answer. Each half may be lost, doubled, and as late as it likes.
type exchange struct {
	sent   bool
	epoch  int8
	state  handover.State
	age    int8 // ticks since it was asked, up to one more than the lease
	answer handover.Answer
	recall bool
}

// machine is both controllers and what is between them. It is comparable.
type machine struct {
	giver, receiver   handover.State
	epoch, heldEpoch  int8 // of the giver; of the receiver
	until, left       int8 // until the giver may take over; of the receiver's lease, which goes on below zero
	listened          int8 // ticks since the giver last looked for silence
	recalled          bool
	offered, accepted int8 // the epoch of the latest offer under way; and of the latest acceptance
	between           [2]exchange
}

// flaw is a mistake that the protocol could have; the search has to find what comes of it.
type flaw string

const (
	sound           flaw = ""
	countsFromReply flaw = "the lease counts from when the answer came"
	noMargin        flaw = "the giver takes over before the margin is over"
	grantsTooSoon   flaw = "the giver grants before it has released"
)

func begin() machine { return machine{giver: handover.Home, receiver: handover.Over} }

func (m machine) giverActs() bool    { return m.giver == handover.Home || m.giver == handover.Offered }
func (m machine) receiverActs() bool { return m.receiver == handover.Held && m.left > 0 }

// receiverMayCommit is receiverActs with what began before the end of the lease and is committed after it.
func (m machine) receiverMayCommit() bool {
	return m.receiver == handover.Held && m.left > -marginTicks
}

func (m *machine) request() {
	if m.giver == handover.Home {
		m.giver, m.recalled, m.epoch = handover.Offered, false, m.epoch+1
	}
}

// changed is an update of the descriptor, noticed when the offer is made again or the application is to be released.
func (m *machine) changed() {
	if m.giver == handover.Offered {
		m.epoch++
	}
}

func (m *machine) offer() {
	if m.giver == handover.Offered {
		m.offered = m.epoch
	}
}

func (m *machine) accept() {
	if m.offered > m.heldEpoch {
		m.receiver, m.heldEpoch, m.left = handover.Accepted, m.offered, 0
	}
	if m.offered == m.heldEpoch {
		m.accepted = m.offered
	}
}

func (m *machine) let() {
	if m.giver == handover.Offered && m.accepted == m.epoch {
		m.giver, m.until = handover.Released, leaseTicks+marginTicks
	}
}

func (m *machine) keep() {
	if m.giver == handover.Offered {
		m.giver = handover.Home
	}
}

func (m *machine) recall() {
	switch m.giver {
	case handover.Offered:
		m.giver = handover.Home
	case handover.Released:
		m.recalled = true
	}
}

func (m *machine) claim(i int) {
	if slices.Contains([]handover.State{handover.Accepted, handover.Held, handover.Returning}, m.receiver) {
		m.between[i] = exchange{sent: true, epoch: m.heldEpoch, state: m.receiver}
	}
}

func (m *machine) grant(i int, f flaw) {
	x := &m.between[i]
	if !x.sent {
		return
	}
	x.answer, x.recall = handover.Ended, false
	switch {
	case m.epoch != x.epoch:
	case m.giver == handover.Offered && f != grantsTooSoon:
		x.answer = handover.Wait
	case m.giver != handover.Released && (f != grantsTooSoon || m.giver != handover.Offered):
	case x.state == handover.Returning:
		m.takeBack()
	default:
		m.until = leaseTicks + marginTicks
		x.answer, x.recall = handover.Granted, m.recalled
	}
}

func (m *machine) takeBack() {
	m.giver, m.recalled, m.epoch, m.until = handover.Home, false, m.epoch+1, 0
}

func (m *machine) took(i int, f flaw) {
	x := m.between[i]
	if x.answer == "" || x.epoch != m.heldEpoch || m.receiver == handover.Over {
		return
	}
	age := x.age
	if f == countsFromReply {
		age = 0
	}
	switch {
	case x.answer == handover.Ended:
		m.receiver, m.left = handover.Over, 0
	case x.answer != handover.Granted || age >= leaseTicks || m.receiver == handover.Returning || x.state != m.receiver:
	case m.receiver == handover.Held && x.recall:
		m.giveBack()
	default:
		m.receiver, m.left = handover.Held, leaseTicks-age
	}
}

func (m *machine) giveBack() {
	if m.receiver == handover.Held {
		m.receiver, m.left = handover.Returning, 0
	}
}

// watch is the giver's look for a receiver that is silent; it listens for another lease if it was away itself.
func (m *machine) watch(f flaw) {
	if m.giver != handover.Released {
		return
	}
	if m.listened >= leaseTicks {
		m.until = max(m.until, leaseTicks)
	}
	m.listened = 0
	if m.until <= 0 || f == noMargin && m.until <= marginTicks {
		m.takeBack()
	}
}

func (m *machine) tick() {
	m.until, m.listened = max(m.until-1, 0), min(m.listened+1, leaseTicks)
	if m.receiver == handover.Held {
		m.left = max(m.left-1, -marginTicks)
	}
	for i := range m.between {
		if m.between[i].sent {
			m.between[i].age = min(m.between[i].age+1, leaseTicks+1)
		}
	}
}

// next is every state that one step leads to. What is lost is a step that is not taken; a crash loses what is between the two.
func (m machine) next(f flaw) (all []machine) {
	steps := []func(*machine){
		(*machine).request, (*machine).changed, (*machine).offer, (*machine).accept, (*machine).let, (*machine).keep, (*machine).recall,
		(*machine).giveBack, (*machine).tick, func(m *machine) { m.watch(f) },
	}
	for i := range m.between {
		steps = append(steps, func(m *machine) { m.claim(i) }, func(m *machine) { m.grant(i, f) }, func(m *machine) { m.took(i, f) })
	}
	for _, step := range steps {
		to := m
		step(&to)
		if to != m && to.epoch <= lastEpoch {
			all = append(all, to)
		}
	}
	return all
}

// search visits every state and returns how many there are, and the first in which both controllers act.
func search(f flaw) (visited int, both *machine) {
	seen := map[machine]bool{begin(): true}
	for queue := []machine{begin()}; len(queue) > 0; queue = queue[1:] {
		m := queue[0]
		if m.giverActs() && m.receiverMayCommit() {
			return len(seen), &m
		}
		for _, to := range m.next(f) {
			if !seen[to] {
				seen[to] = true
				queue = append(queue, to)
			}
		}
	}
	return len(seen), nil
}

// settles reports whether one of the two acts when nothing more is lost and nobody asks for anything.
func (m machine) settles() bool {
	m.between = [2]exchange{}
	for range leaseTicks + marginTicks + 3 {
		m.claim(0)
		m.grant(0, sound)
		m.took(0, sound)
		m.watch(sound)
		m.tick()
	}
	m.claim(0)
	m.grant(0, sound)
	m.took(0, sound)
	return m.giverActs() != m.receiverActs()
}

// TestNoStateHasTwo visits every state of the protocol.
func TestNoStateHasTwo(t *testing.T) {
	t.Parallel()
	visited, both := search(sound)
	require.Nil(t, both, "%+v", both)
	t.Logf("%d states", visited)
}

// TestTheSearchFindsFlaws, without which it would show nothing.
func TestTheSearchFindsFlaws(t *testing.T) {
	t.Parallel()
	for _, f := range []flaw{countsFromReply, noMargin, grantsTooSoon} {
		_, both := search(f)
		require.NotNil(t, both, f)
	}
}

// TestTheMachineIsTheProtocol takes the same random steps with the machine and with two controllers, and compares them after each.
func TestTheMachineIsTheProtocol(t *testing.T) {
	t.Parallel()
	const tick = 20 * time.Second // of which the lease is 2 and the margin 1
	slow := handover.Settings{Lease: leaseTicks * tick, Margin: marginTicks * tick}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w, m := newWorld(t), begin()
			w.limits = slow
			r := rand.New(rand.NewPCG(seed, 34)) //nolint:gosec // a seed that can be repeated
			var offer *handover.Handover
			var claims [2]*claim
			var leases [2]*handover.Lease
			for n := range 150 {
				i := r.IntN(2)
				did := ""
				switch r.IntN(10) {
				case 0:
					did = "request"
					m.request()
					_ = w.request()
				case 1:
					did = "offer"
					m.offer()
					if h := w.offer(); h != nil {
						offer = h
					}
				case 2:
					did = "accept"
					m.accept()
					if offer != nil {
						_ = w.accept(offer)
					}
				case 3:
					did = "let"
					m.let()
					if offer != nil && m.accepted == int8(offer.Epoch) { //nolint:gosec // small numbers
						w.let(offer)
					}
				case 4:
					did = "claim"
					m.claim(i)
					if c := w.claim(); c != nil {
						claims[i], leases[i] = c, nil
					}
				case 5:
					did = "grant"
					m.grant(i, sound)
					if claims[i] != nil {
						l := w.grant(claims[i])
						leases[i] = &l
					}
				case 6:
					did = "took"
					m.took(i, sound)
					if leases[i] != nil {
						w.took(claims[i], *leases[i])
					}
				case 7:
					did = "watch"
					m.watch(sound)
					w.watch()
				case 8:
					did = "tick"
					m.tick()
					w.pass(tick)
					for _, c := range claims {
						if c != nil {
							c.asked = c.asked.Add(-tick)
						}
					}
				case 9:
					did = "recall"
					m.recall()
					_ = w.try(w.shore, func(ctx context.Context, tx *store.Tx) error {
						_, err := handover.Recall(ctx, tx, w.id, "test")
						return err
					})
				}
				shore, harbour := w.row(w.shore), w.row(w.harbour)
				require.Equal(t, [4]any{m.giver, int64(m.epoch), m.receiver, int64(m.heldEpoch)},
					[4]any{orState(shore.State, handover.Home), shore.Epoch, orState(harbour.State, handover.Over), harbour.Epoch}, "%d: %s", n, did)
				require.Equal(t, [2]bool{m.giverActs(), m.receiverActs()}, [2]bool{w.acts(w.shore), w.acts(w.harbour)}, "%d: %s", n, did)
				require.True(t, m.settles(), "%d: %s", n, did)
			}
		})
	}
}

func orState(s, none handover.State) handover.State {
	if s == "" {
		return none
	}
	return s
}
