package policies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// ActionStatus says what became of an action.
type ActionStatus string

// The statuses. A held action is tried again, a suggested one waits for a person; done and skipped ones are over.
const (
	Pending   ActionStatus = "pending"
	Held      ActionStatus = "held"
	Suggested ActionStatus = "suggested"
	Done      ActionStatus = "done"
	Skipped   ActionStatus = "skipped"
)

// Action is what is to be done about one violation.
type Action struct {
	ID          uuid.UUID          `db:"id"`
	PolicyID    uuid.UUID          `db:"policy_id"`
	Instance    string             `db:"instance"`
	Component   string             `db:"component"`
	Remediation string             `db:"remediation"`
	Status      ActionStatus       `db:"status"`
	Detail      string             `db:"detail"`
	ConfirmedBy string             `db:"confirmed_by"`
	Violation   registry.Violation `db:"violation"`
}

const selectAction = `select id, policy_id, instance, component, remediation, status, detail, confirmed_by, violation
from policy_actions where id = $1 for update`

// LockAction returns the action for a violation and locks it for this transaction; nil when there is none.
func LockAction(ctx context.Context, tx *store.Tx, violation uuid.UUID) (*Action, error) {
	a, err := store.One(ctx, tx, "read action", pgx.RowToAddrOfStructByName[Action], selectAction, violation)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return a, err
}

// Over reports whether nothing is left to do.
func (a *Action) Over() bool { return a.Status == Done || a.Status == Skipped }

// Due returns the policy if it still asks for the action, or else why it does not. Nothing is begun about a violation
// that has ended, except to record it.
func (a *Action) Due(ctx context.Context, tx *store.Tx) (p *Policy, past string, err error) {
	p, err = Get(ctx, tx, a.PolicyID)
	switch {
	case problem.KindOf(err) == problem.NotFound:
		return nil, "the policy was deleted", nil
	case err != nil:
		return nil, "", err
	case !p.Active():
		return nil, "the policy is not watched any more", nil
	case !p.Open(a.ID) && !p.onlyRecords():
		return nil, "this violation had ended when its turn came", nil
	}
	return p, "", nil
}

// Remediation is what the policy asks for; "none" unless it asks for something. The error is Invalid for an unknown one.
func (p *Policy) Remediation() (job.Remediation, error) {
	return job.ParseRemediation(cmp.Or(p.Action.Remediation(), string(job.NoRemediation)))
}

// onlyRecords reports whether the policy only asks to record its violations.
func (p *Policy) onlyRecords() bool {
	r, err := p.Remediation()
	return err == nil && r == job.NoRemediation && p.Action.URL == ""
}

// Finish ends the action.
func (a *Action) Finish(ctx context.Context, tx *store.Tx, status ActionStatus, detail string) error {
	return a.finish(ctx, tx, status, false, detail)
}

// finish ends the action; idle says that it should have moved something and did not. Such a one does not count as a move
// of its application; its component is left alone for the cool-down all the same, since all places were tried.
func (a *Action) finish(ctx context.Context, tx *store.Tx, status ActionStatus, idle bool, detail string) error {
	a.Status, a.Detail = status, brief(detail)
	_, err := tx.Exec(ctx, `update policy_actions set status = $2, detail = $3, idle = $4, acted_at = clock_timestamp(),
held_until = null where id = $1`, a.ID, status, a.Detail, idle)
	if err != nil {
		return fmt.Errorf("finish action: %w", err)
	}
	if status != Skipped {
		return nil
	}
	return a.record(ctx, tx, recorded.PolicySkipped, "policy "+a.Violation.PolicyName+": nothing was done: "+a.Detail)
}

// Stay ends an action that should have moved something but did not: the component has nowhere else to go for now, or is
// waiting for a place already.
func (a *Action) Stay(ctx context.Context, tx *store.Tx) error {
	const what = "nothing was moved"
	if err := a.finish(ctx, tx, Done, true, what); err != nil {
		return err
	}
	message := "policy " + a.Violation.PolicyName + ": " + what + ": it has nowhere else to go now, or waits for a place already"
	return a.record(ctx, tx, recorded.PolicyStayed, message)
}

// hold postpones the action; history records each new reason once.
func (a *Action) hold(ctx context.Context, tx *store.Tx, until time.Time, detail string) error {
	again := a.Status == Held && a.Detail == detail
	a.Status, a.Detail = Held, detail
	_, err := tx.Exec(ctx, `update policy_actions set status = 'held', detail = $2, held_until = $3 where id = $1`, a.ID,
		detail, until)
	if err != nil {
		return fmt.Errorf("hold action: %w", err)
	}
	if again {
		return nil
	}
	message := fmt.Sprintf("policy %s: %s is held back: %s; tried again after %s", a.Violation.PolicyName, a.Remediation,
		detail, until.UTC().Format(time.TimeOnly))
	return a.record(ctx, tx, recorded.PolicyHeld, message)
}

func (a *Action) record(ctx context.Context, tx *store.Tx, event, message string) error {
	return history.Record(ctx, tx, history.Entry{
		ApplicationID: instanceID(a.Instance), Component: a.Component, Event: event, Message: message,
	})
}

// Brakes limit how often remediations act.
type Brakes struct {
	// Cooldown is how long a component is left alone after a remediation, even one that found no other place for it.
	Cooldown time.Duration `envconfig:"POLICY_COOLDOWN" default:"60s"`
	// MovesPerHour is how many moves the components of one application may make in an hour; 0 = no limit.
	MovesPerHour int `envconfig:"POLICY_MOVES_PER_HOUR" default:"10"`
}

const (
	lastAction = `select max(acted_at) from policy_actions where status = 'done' and instance = $1 and component = $2
and remediation not in ('', 'none') and id <> $3`

	recentMoves = `select count(*), min(acted_at) from policy_actions where status = 'done' and instance = $1
and remediation = $2 and not idle and acted_at > now() - interval '1 hour'`
)

// Brake holds the action back if its component was remediated a moment ago, if its application was moved too often, or
// if a component whose telemetry is lost may still be heard of where it is now. Actions of one application take turns
// here.
func (a *Action) Brake(ctx context.Context, tx *store.Tx, p *Policy, b Brakes) (held bool, err error) {
	if a.Instance == "" {
		return false, nil
	}
	if err := tx.AwaitTurn(ctx, store.TurnActions, a.Instance); err != nil {
		return false, err
	}
	var last *time.Time
	if err := tx.QueryRow(ctx, lastAction, a.Instance, a.Component, a.ID).Scan(&last); err != nil {
		return false, fmt.Errorf("read actions: %w", err)
	}
	if last != nil && time.Since(*last) < b.Cooldown {
		why := fmt.Sprintf("the last remediation of %s was less than %s ago", a.Component, b.Cooldown)
		return true, a.hold(ctx, tx, last.Add(b.Cooldown), why)
	}
	if a.Remediation != string(job.Reallocate) {
		return false, nil
	}
	if held, err := a.listen(ctx, tx, p); err != nil || held {
		return held, err
	}
	if b.MovesPerHour <= 0 {
		return false, nil
	}
	var moves int
	var first *time.Time
	if err := tx.QueryRow(ctx, recentMoves, a.Instance, job.Reallocate).Scan(&moves, &first); err != nil {
		return false, fmt.Errorf("read actions: %w", err)
	}
	if moves < b.MovesPerHour || first == nil {
		return false, nil
	}
	why := fmt.Sprintf("the application was moved %d times within an hour", moves)
	return true, a.hold(ctx, tx, first.Add(time.Hour), why)
}

// LockSubject locks the application that the action is about, if it exists. Like everyone who moves its components, it
// takes the lock of placement first.
func (a *Action) LockSubject(ctx context.Context, tx *store.Tx) error {
	if err := tx.Lock(ctx, store.LockPlacement); err != nil {
		return err
	}
	app := instanceID(a.Instance)
	if app == nil {
		return nil
	}
	if _, err := application.Lock(ctx, tx, *app); err != nil && problem.KindOf(err) != problem.NotFound {
		return err
	}
	return nil
}

// listen holds back the action of a policy about lost telemetry until the component has been at its present place for
// the timeout of the policy. The silence may be that of its former place, and if it continues there will be no other
// alert.
func (a *Action) listen(ctx context.Context, tx *store.Tx, p *Policy) (held bool, err error) {
	silence, lost := p.Silence()
	app := instanceID(a.Instance)
	if !lost || app == nil {
		return false, nil
	}
	if err := tx.Lock(ctx, store.LockPlacement); err != nil { // otherwise a placement that is being decided would be missed
		return false, err
	}
	jobs, err := job.OfApplications(ctx, tx, *app)
	if err != nil {
		return false, err
	}
	jobs = slices.DeleteFunc(jobs, func(j *job.Job) bool {
		return !j.Live() || a.Component != "" && j.Component != a.Component
	})
	if len(jobs) > 0 && !slices.ContainsFunc(jobs, (*job.Job).Placed) {
		return true, a.hold(ctx, tx, time.Now().Add(silence), a.Component+" waits for a place")
	}
	placed, err := history.Last(ctx, tx, *app, a.Component, job.Place.Event(), time.Now().Add(-silence))
	if err != nil || placed.IsZero() {
		return false, err
	}
	why := fmt.Sprintf("%s was placed less than %s ago, and may yet be heard of there", a.Component, silence)
	return true, a.hold(ctx, tx, placed.Add(silence), why)
}

const selectDue = `select a.id, a.policy_id from policy_actions a where a.status = 'held' and a.held_until <= now()
order by a.held_until limit 1000`

// moveOn postpones an action again, if it is still held and due.
const moveOn = `update policy_actions set held_until = now() + $2::interval
where id = $1 and status = 'held' and held_until <= now()`

// abandoned is when a released action counts as lost and is released again. The Trigger of policymanager/remediate delivers
// for seventeen minutes.
const abandoned = 20 * time.Minute

// Release emits an event for each held action that is due. If nobody handles it, it is released again only after the
// Broker has given up: an event at each tick would become a dead letter at each.
func Release(ctx context.Context, db *store.DB) (int, error) {
	type due struct{ Violation, Policy uuid.UUID }
	found, err := store.Collect(ctx, db, "find held actions", pgx.RowToStructByPos[due], selectDue)
	if err != nil {
		return 0, err
	}
	for _, d := range found {
		err := db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			tag, err := tx.Exec(ctx, moveOn, d.Violation, abandoned)
			if err != nil {
				return fmt.Errorf("move the held action on: %w", err)
			}
			if tag.RowsAffected() == 0 {
				return nil
			}
			return tx.Emit(ctx, events.RemediationRequested, d.Policy.String(), events.Policy{ID: d.Policy, Violation: &d.Violation})
		})
		if err != nil {
			return 0, err
		}
	}
	return len(found), nil
}
