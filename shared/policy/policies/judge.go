package policies

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Judge updates the policy after an alert. The first notice of an episode announces a violation, whatever the number
// and order of notices; the end of the last open episode announces that the policy is kept again. An episode that goes
// on after it had ended is announced once more. A component that had nowhere else to go may stay where it is as soon as
// its own violation ends.
func Judge(ctx context.Context, tx *store.Tx, a events.Alert) error {
	p, err := Lock(ctx, tx, a.Policy)
	if problem.KindOf(err) == problem.NotFound {
		return nil // deleted while the alert was firing
	}
	if err != nil {
		return err
	}
	before := p.State.Phase
	if before == registry.Unknown {
		return nil // the policy is not watched: the alert comes from a former rule
	}
	instance := p.instance(a.Labels)
	notice := registry.Notice{
		Fingerprint: a.Fingerprint, Instance: instance, Component: a.Labels[componentLabel], StartsAt: a.StartsAt,
		EndsAt: a.EndsAt, Firing: a.Firing, ReceivedAt: a.ReceivedAt, Since: a.Since,
	}
	state, outcome := p.State.Judge(notice, p.Properties.Oneoff)
	p.State = state
	if err := p.save(ctx, tx); err != nil {
		return err
	}
	switch outcome.Verdict {
	case registry.NewEpisode, registry.Continued:
		return p.violated(ctx, tx, a, outcome.Verdict)
	case registry.AllResolved:
		if err := p.resolved(ctx, tx, instance, a); err != nil {
			return err
		}
	case registry.NoChange:
	}
	if !outcome.Ended {
		return nil
	}
	if err := p.withdraw(ctx, tx); err != nil {
		return err
	}
	const kept = "is kept again"
	goesOn := func(about string) bool { return about == instance || about == "" }
	if !slices.ContainsFunc(p.State.Instances(), goesOn) {
		if err := p.record(ctx, tx, instance, "", recorded.PolicyResolved, "policy "+p.Name+" "+kept); err != nil {
			return err
		}
	}
	return p.releaseMisplaced(ctx, tx, instance, kept)
}

// componentLabel is the label of an alert that names the component.
const componentLabel = label.AppComponent

// violations is the UUID namespace of violation ids.
var violations = uuid.MustParse("0d6f9f0e-3a7b-5c55-8d53-6f1f7d1c2ab4")

// violationID is the id of an episode within one activation of the policy: the same for each notice of it.
func violationID(policy uuid.UUID, activated time.Time, fingerprint string, start time.Time) uuid.UUID {
	parts := []string{
		policy.String(), activated.UTC().Format(time.RFC3339Nano), fingerprint, start.UTC().Format(time.RFC3339Nano),
	}
	return uuid.NewSHA1(violations, []byte(strings.Join(parts, "\x00")))
}

// Open reports whether the violation continues.
func (p *Policy) Open(violation uuid.UUID) bool {
	for fingerprint, start := range p.State.Open() {
		if violationID(p.UUID(), p.State.Since, fingerprint, start) == violation {
			return true
		}
	}
	return false
}

const insertAction = `insert into policy_actions (id, policy_id, instance, component, remediation, violation,
started_at, received_at) values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing`

// forgetIdle deletes an action that changed nothing.
const forgetIdle = `delete from policy_actions where id = $1 and (status = 'skipped' or idle)`

// violated announces the violation. If an episode continues after all and its action had no effect so far, it is acted
// upon once more: the action may have found the episode ended, or may have left the component where it is, which was
// excused since.
func (p *Policy) violated(ctx context.Context, tx *store.Tx, a events.Alert, verdict registry.Verdict) error {
	id := violationID(p.UUID(), p.State.Since, a.Fingerprint, a.StartsAt)
	v, err := p.Violation(id.String(), a.Labels, a.Annotations)
	if err != nil { // it is unclear what the alert is about, so nothing is done
		if err := p.unclear(ctx, tx, err); err != nil {
			return err
		}
		return p.record(ctx, tx, p.instance(a.Labels), "", recorded.PolicyUnclear, "an alert of policy "+p.Name+" is not acted upon: "+brief(err.Error()))
	}
	details := map[string]any{"currentValue": brief(v.CurrentValue), "violation": id.String()}
	if v.Threshold != nil {
		details["threshold"] = *v.Threshold
	}
	if err := p.note(ctx, tx, registry.EventViolated, details); err != nil {
		return err
	}
	instance, component := v.Subject.AppInstance, v.Subject.AppComponent
	message := fmt.Sprintf("policy %s is violated (value %s)", p.Name, brief(v.CurrentValue))
	if ahead := p.Properties.Forecast; ahead != "" {
		message = fmt.Sprintf("policy %s is violated, or will be within %s (value %s)", p.Name, ahead, brief(v.CurrentValue))
	}
	if verdict == registry.Continued {
		message = fmt.Sprintf("policy %s is violated still (value %s): its alert had not ended", p.Name, brief(v.CurrentValue))
	}
	if err := p.record(ctx, tx, instance, component, recorded.PolicyViolated, message); err != nil {
		return err
	}
	if verdict == registry.Continued {
		tag, err := tx.Exec(ctx, forgetIdle, id)
		if err != nil {
			return fmt.Errorf("forget action: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return p.request(ctx, tx, instance, component, id)
		}
	}
	remediation := p.Action.Remediation()
	if known, err := job.ParseRemediation(remediation); err == nil {
		remediation = string(known) // the canonical name, so that all moves are counted
	}
	_, err = tx.Exec(ctx, insertAction, id, p.UUID(), instance, component, remediation, v, a.StartsAt, a.ReceivedAt)
	if err != nil {
		return fmt.Errorf("store action: %w", err)
	}
	if err := p.announce(ctx, tx, events.PolicyViolated, instance, component, &id); err != nil {
		return err
	}
	return p.request(ctx, tx, instance, component, id)
}

// request asks for what is to be done about the violation: a call, or else a remediation.
func (p *Policy) request(ctx context.Context, tx *store.Tx, instance, component string, violation uuid.UUID) error {
	typ := events.RemediationRequested
	if p.Action.URL != "" {
		typ = events.WebhookRequested
	}
	return p.announce(ctx, tx, typ, instance, component, &violation)
}

func (p *Policy) resolved(ctx context.Context, tx *store.Tx, instance string, a events.Alert) error {
	if err := p.note(ctx, tx, registry.EventResolved, nil); err != nil {
		return err
	}
	return p.announce(ctx, tx, events.PolicyResolved, instance, a.Labels[componentLabel], nil)
}

// record adds an entry to the history of the policy's application.
func (p *Policy) record(ctx context.Context, tx *store.Tx, instance, component, event, message string) error {
	return history.Record(ctx, tx, history.Entry{
		ApplicationID: instanceID(instance), Component: component, Event: event, Message: message,
	})
}

// instance returns the instance that an alert of the policy is about; empty when it is unknown or none.
func (p *Policy) instance(labels map[string]string) string {
	if _, several := registry.Regexp(p.Instance); !several {
		return p.Instance
	}
	if told := labels[registry.InstanceLabel]; registry.Matches(p.Instance, told) {
		return told
	}
	return ""
}

// instanceID returns the instance as the id of an application of ours; nil when it is anything else.
func instanceID(instance string) *uuid.UUID {
	id, err := uuid.Parse(instance)
	if err != nil || len(instance) != 36 {
		return nil
	}
	return &id
}
