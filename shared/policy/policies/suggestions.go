package policies

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Suggestion is a remediation that waits for a person, who confirms or dismisses it.
type Suggestion struct {
	ID           uuid.UUID `json:"id"` // that of the violation
	PolicyID     uuid.UUID `json:"policyId"`
	PolicyName   string    `json:"policyName"`
	Application  string    `json:"appInstance"`
	AppName      string    `json:"appName"`
	Component    string    `json:"appComponent"`
	Remediation  string    `json:"remediation"`
	CurrentValue string    `json:"currentValue"`
	Threshold    *string   `json:"threshold"`
	Since        time.Time `json:"since"`
}

const selectSuggested = `select a.id, a.policy_id, a.instance, a.component, a.remediation, a.violation, a.judged_at
from policy_actions a where a.status = 'suggested' and ($1::text is null or a.instance = $1) order by a.judged_at, a.id limit $2`

// mostSuggested bounds a list: who lets more wait does not read them.
const mostSuggested = 500

// Suggestions lists what waits for a person, oldest first and at most 500; of one application if its id is given. What the end
// of a violation has overtaken is left out.
func Suggestions(ctx context.Context, q store.Querier, application *uuid.UUID) ([]Suggestion, error) {
	type row struct {
		ID, Policy                       uuid.UUID
		Instance, Component, Remediation string
		Violation                        registry.Violation
		At                               time.Time
	}
	rows, err := store.Collect(ctx, q, "read suggestions", pgx.RowToStructByPos[row], selectSuggested, application, mostSuggested)
	if err != nil || len(rows) == 0 {
		return []Suggestion{}, err
	}
	ids := make([]uuid.UUID, len(rows))
	for i := range rows {
		ids[i] = rows[i].Policy
	}
	watched, err := many(ctx, q, selectSome, ids)
	if err != nil {
		return nil, err
	}
	byID := map[uuid.UUID]*Policy{}
	for _, p := range watched {
		byID[p.UUID()] = p
	}
	out := []Suggestion{}
	for _, r := range rows {
		p := byID[r.Policy]
		if p == nil || p.DeletedAt != nil || !p.Active() || !p.Open(r.ID) {
			continue
		}
		out = append(out, Suggestion{
			ID: r.ID, PolicyID: r.Policy, PolicyName: p.Name, Application: r.Instance, AppName: r.Violation.Subject.AppName,
			Component: r.Component, Remediation: r.Remediation, CurrentValue: r.Violation.CurrentValue, Threshold: r.Violation.Threshold,
			Since: r.At,
		})
	}
	return out, nil
}

// Suggest leaves the action to a person.
func (a *Action) Suggest(ctx context.Context, tx *store.Tx) error {
	if a.Status == Suggested {
		return nil
	}
	a.Status = Suggested
	_, err := tx.Exec(ctx, `update policy_actions set status = $2, remediation = $3, held_until = null where id = $1`, a.ID, a.Status, a.Remediation)
	if err != nil {
		return fmt.Errorf("suggest action: %w", err)
	}
	return a.record(ctx, tx, recorded.PolicySuggested, fmt.Sprintf("policy %s suggests %s, and waits for a person to confirm it", a.Violation.PolicyName, a.Remediation))
}

// Confirm has a suggestion carried out. Twice is no fault. The error is NotFound without such a suggestion, and Conflict if it was
// dismissed or its violation has ended.
func Confirm(ctx context.Context, tx *store.Tx, violation uuid.UUID, by string) error {
	a, err := suggested(ctx, tx, violation)
	if err != nil || a.ConfirmedBy != "" {
		return err
	}
	if a.Over() {
		return problem.New(problem.Conflict, "the suggestion is over: %s", a.Detail)
	}
	if _, past, err := a.Due(ctx, tx); err != nil || past != "" {
		if err == nil {
			err = problem.New(problem.Conflict, "the suggestion is over: %s", past)
		}
		return err
	}
	_, err = tx.Exec(ctx, `update policy_actions set status = 'pending', confirmed_by = $2 where id = $1`, a.ID, brief(by))
	if err != nil {
		return fmt.Errorf("confirm action: %w", err)
	}
	if err := a.record(ctx, tx, recorded.PolicyConfirmed, fmt.Sprintf("policy %s: %s is confirmed by %s", a.Violation.PolicyName, a.Remediation, brief(by))); err != nil {
		return err
	}
	return tx.Emit(ctx, events.RemediationRequested, a.PolicyID.String(), events.Policy{ID: a.PolicyID, Violation: &a.ID})
}

// Dismiss ends a suggestion without doing it. Twice is no fault. The error is NotFound without such a suggestion, and Conflict if it
// was confirmed before.
func Dismiss(ctx context.Context, tx *store.Tx, violation uuid.UUID, by string) error {
	a, err := suggested(ctx, tx, violation)
	switch {
	case err != nil:
		return err
	case a.ConfirmedBy != "":
		return problem.New(problem.Conflict, "it is confirmed by %s already", a.ConfirmedBy)
	case a.Over():
		return nil
	}
	return a.Finish(ctx, tx, Skipped, "dismissed by "+brief(by))
}

// suggested locks an action that is, or was, a suggestion.
func suggested(ctx context.Context, tx *store.Tx, violation uuid.UUID) (*Action, error) {
	a, err := LockAction(ctx, tx, violation)
	if err != nil {
		return nil, err
	}
	if a == nil || a.ConfirmedBy == "" && a.Status != Suggested && a.Status != Skipped {
		return nil, problem.New(problem.NotFound, "there is no suggestion %s", violation)
	}
	return a, nil
}

// withdraw ends the policy's suggestions whose violations have ended.
func (p *Policy) withdraw(ctx context.Context, tx *store.Tx) error {
	ids, err := store.Collect(ctx, tx, "find suggestions", pgx.RowTo[uuid.UUID],
		`select id from policy_actions where policy_id = $1 and status = 'suggested' order by id`, p.UUID())
	if err != nil {
		return err
	}
	for _, id := range ids {
		if p.Open(id) {
			continue
		}
		a, err := LockAction(ctx, tx, id)
		if err != nil {
			return err
		}
		if a == nil || a.Status != Suggested {
			continue
		}
		if err := a.Finish(ctx, tx, Skipped, "the violation ended before anybody had confirmed it"); err != nil {
			return err
		}
	}
	return nil
}
