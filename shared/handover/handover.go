// Package handover moves applications between controllers so that at no moment two act on one (shared/docs/controllers.md).
//
// The controller that an application was submitted to is its giver, and stays the one to which it falls back; the other is
// the receiver, which acts under a lease of the giver. A move is four steps, each of which may be repeated by either side
// after a crash: the receiver says what it could do (offer), stores the application without acting (accept), the giver stops
// acting (release), and the receiver asks for its first lease and begins. Every renewal also reports what the application does
// there, and brings back what the giver wants.
package handover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Settings are read from the environment by envconfig. The clocks of two controllers need not agree; within the lease and
// twice the margin neither may gain the margin on the other.
type Settings struct {
	Lease  time.Duration `envconfig:"CONTROLLER_LEASE" default:"2m"`   // from asking for it until the receiver stops acting
	Margin time.Duration `envconfig:"CONTROLLER_MARGIN" default:"30s"` // from then until the giver may take the application back
}

// Check refuses settings that give no protection.
func (s Settings) Check() error {
	if s.Lease <= 0 || s.Margin <= 0 {
		return errors.New("CONTROLLER_LEASE and CONTROLLER_MARGIN must be positive")
	}
	return nil
}

// Side says which end of a hand-over this controller is.
type Side string

// The sides.
const (
	Giver    Side = "giver"
	Receiver Side = "receiver"
)

// State is how far a hand-over is. This controller acts on the application in home and offered; in held until its lease ends;
// in none of the others.
type State string

// The states: of the giver, and of the receiver.
const (
	Home     State = "home"     // nobody else has it
	Offered  State = "offered"  // a receiver is asked to accept it
	Released State = "released" // a receiver has it, or may begin

	Accepted  State = "accepted"  // stored; waits for the first lease
	Held      State = "held"      // acts while its lease lasts
	Returning State = "returning" // has stopped, and tells the giver
	Over      State = "over"      // has nothing to do with it any more
)

// Handover is the row of an application at one side.
type Handover struct {
	Application uuid.UUID  `json:"application"       db:"application_id"`
	Side        Side       `json:"side"              db:"side"`
	State       State      `json:"state"             db:"state"`
	Peer        string     `json:"peer,omitempty"    db:"peer"`
	Epoch       int64      `json:"epoch"             db:"epoch"`
	Until       *time.Time `json:"until,omitempty"   db:"until"`
	Recalled    bool       `json:"recalled"          db:"recalled"`
	Reason      string     `json:"reason,omitempty"  db:"reason"`
	Overflow    bool       `json:"-"                 db:"overflow"` // it ends when the application fits here after all
	Content     *Content   `json:"-"                 db:"content"`
	ChangedAt   time.Time  `json:"changedAt"         db:"changed_at"`
	Late        bool       `json:"-"                 db:"late"` // until has passed
}

// Content is what of an application is handed over.
type Content struct {
	Name       string           `json:"name"`
	Dialect    appmodel.Dialect `json:"dialect"`
	Descriptor string           `json:"descriptor"`

	// Needs is what its compose files ask for. A controller that does not send it knows of none.
	Needs []appmodel.ComposeNeeds `json:"composeNeeds,omitempty"`

	Owner   string `json:"owner"`
	Version int64  `json:"version"`
}

// Check refuses content that no application can have.
func (c *Content) Check() error {
	var faults problem.Faults
	if c.Name == "" {
		faults.Add("data.application.name", 0, "is missing")
	}
	if c.Descriptor == "" {
		faults.Add("data.application.descriptor", 0, "is missing")
	}
	if c.Version < 1 {
		faults.Add("data.application.version", 0, "is not positive")
	}
	return faults.Err("the application cannot be accepted")
}

const (
	columns = `application_id, side, state, peer, epoch, until, recalled, reason, overflow, content, changed_at, coalesce(until <= now(), false) as late`

	selectOne          = `select ` + columns + ` from handovers where application_id = $1`
	selectOneForUpdate = selectOne + ` for update`
	selectAll          = `select ` + columns + ` from handovers order by changed_at desc, application_id limit $1`
	selectOpen         = `select ` + columns + ` from handovers where side = $1 and state = any($2) and state not in ('home', 'over')
order by application_id limit $3`

	insertOne = `insert into handovers (application_id, side, state, peer, epoch) values ($1, $2, $3, '', 0) on conflict do nothing`

	updateOne = `update handovers set side = $2, state = $3, peer = $4, epoch = $5, recalled = $6, reason = $7, content = $8,
until = $9, overflow = $10, changed_at = now() where application_id = $1`
)

// MostListed bounds a listing, and what is renewed or looked at in one call of a function.
const MostListed = 500

// List returns the hand-overs, those that changed last first.
func List(ctx context.Context, q store.Querier) ([]Handover, error) {
	return store.Collect(ctx, q, "read hand-overs", pgx.RowToStructByName[Handover], selectAll, MostListed)
}

// Open returns the hand-overs of one side that are in one of the states.
func Open(ctx context.Context, q store.Querier, side Side, states ...State) ([]Handover, error) {
	return store.Collect(ctx, q, "read hand-overs", pgx.RowToStructByName[Handover], selectOpen, side, states, MostListed)
}

// Get returns the hand-over of the application. The error is NotFound.
func Get(ctx context.Context, q store.Querier, id uuid.UUID) (*Handover, error) {
	return one(ctx, q, selectOne, id)
}

func one(ctx context.Context, q store.Querier, sql string, id uuid.UUID) (*Handover, error) {
	h, err := store.One(ctx, q, "read hand-over", pgx.RowToAddrOfStructByName[Handover], sql, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, problem.New(problem.NotFound, "application %s was never handed over", id)
	}
	return h, err
}

// lock returns the row of the application, locked; a new one, in the state over or home, if there is none.
func lock(ctx context.Context, tx *store.Tx, id uuid.UUID, side Side, fresh State) (*Handover, error) {
	if _, err := tx.Exec(ctx, insertOne, id, side, fresh); err != nil {
		return nil, fmt.Errorf("note hand-over: %w", err)
	}
	return one(ctx, tx, selectOneForUpdate, id)
}

// known is lock for an application whose row must be there; nil if it is not.
func known(ctx context.Context, tx *store.Tx, id uuid.UUID) (*Handover, error) {
	h, err := one(ctx, tx, selectOneForUpdate, id)
	if problem.KindOf(err) == problem.NotFound {
		return nil, nil //nolint:nilnil // none is an answer
	}
	return h, err
}

// save stores the row; message says for people what happened, and goes into the history of the application.
func (h *Handover) save(ctx context.Context, tx *store.Tx, message string) error {
	_, err := tx.Exec(ctx, updateOne, h.Application, h.Side, h.State, h.Peer, h.Epoch, h.Recalled, h.Reason, h.Content, h.Until,
		h.Overflow)
	if err != nil {
		return fmt.Errorf("store hand-over: %w", err)
	}
	if message == "" {
		return nil
	}
	return history.Record(ctx, tx, history.Entry{
		ApplicationID: &h.Application, Event: "handover." + string(h.State), Message: fmt.Sprintf("%s (controller epoch %d)", message, h.Epoch),
	})
}

// tickFor resumes the clocks that look after hand-overs.
func tickFor(ctx context.Context, tx *store.Tx) error {
	return tx.Emit(ctx, events.ClockWanted, events.Clocks, events.Clock{Need: "handovers"})
}

// after is so long from now, by the clock of this controller's Postgres.
func after(ctx context.Context, q store.Querier, d time.Duration) (*time.Time, error) {
	var at time.Time
	if err := q.QueryRow(ctx, `select clock_timestamp() + $1::interval`, d).Scan(&at); err != nil {
		return nil, fmt.Errorf("read the clock: %w", err)
	}
	return &at, nil
}

// Now is the clock by which leases of this controller end.
func Now(ctx context.Context, q store.Querier) (time.Time, error) {
	at, err := after(ctx, q, 0)
	if err != nil {
		return time.Time{}, err
	}
	return *at, nil
}
