// Package policies stores policies: their rows and events, the alerts about them, and the actions on each violation.
//
// Every change of a policy is made in a transaction that also writes one of the policy's events and announces it. The
// alert rule of a policy lives outside Postgres. A transaction only raises the number of changes that the rule store
// has to follow and announces PolicyChanged. Whoever is told claims the change, carries the rule over with no transaction
// open, and settles how far the store has followed (Sync). The rule is named by the policy, so a crash anywhere leaves
// either a repeat of the same rule or nothing to do.
//
// PromQL is made by the caller (a Renderer), since its parser is heavy and most functions need none.
package policies

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/etag"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Renderer makes the spec that is watched from a policy. The error is Invalid.
type Renderer func(*registry.Policy) (registry.Spec, error)

// Origin is who asked for a policy.
type Origin string

// The origins.
const (
	FromAPI        Origin = "api"
	FromDescriptor Origin = "descriptor" // of an application of ours; updated with each version of the descriptor
	FromService    Origin = "service"    // a job manager told us about its application
)

// Policy is a policy with what only the database knows about it.
type Policy struct {
	registry.Policy
	Instance      string // of the application that its subject names; empty for hosts
	Origin        Origin
	OriginVersion int64 // version of the descriptor that last asked for it, even if a person created it again since; 0 = none
	State         registry.State
	Paused        bool // deactivated by a person, or created so: starting its application does not activate it
	RuleWanted    int64
	RuleDone      int64
	RuleFile      string
	RuleURL       string
	Version       int64
	CreatedAt     time.Time
	UpdatedAt     time.Time
	DeletedAt     *time.Time

	size int // of its row, in bytes
}

// definition is what a user says about a policy besides its name.
type definition struct {
	Subject    registry.Subject    `json:"subject"`
	Spec       registry.Spec       `json:"spec"`
	Action     registry.Action     `json:"action"`
	Variables  registry.Variables  `json:"variables"`
	Properties registry.Properties `json:"properties"`
}

func defined(p *registry.Policy) definition {
	return definition{p.Subject, p.Spec, p.Action, p.Variables, p.Properties}
}

// same reports whether two policies have the same name and definition.
func same(a, b *registry.Policy) bool { return a.Name == b.Name && said(a) != "" && said(a) == said(b) }

// said is the definition as JSON; empty if that cannot be encoded.
func said(p *registry.Policy) string {
	text, err := json.Marshal(defined(p))
	if err != nil {
		return ""
	}
	return string(text)
}

// New returns the policy as it will be stored. Its id is derived from instance and name, so that creating the same
// policy twice gives one.
func New(p registry.Policy, origin Origin) *Policy {
	p.Defaults()
	instance := p.Subject.AppInstance
	p.ID = registry.ID(instance, p.Name)
	return &Policy{
		Policy: p, Instance: instance, Origin: origin, State: registry.State{Phase: registry.Inactive},
	}
}

// UUID is the policy's id.
func (p *Policy) UUID() uuid.UUID { return uuid.MustParse(p.ID) }

// ETag names the version, which also changes with the phase.
func (p *Policy) ETag() string { return etag.Of(p.Version) }

// Active reports whether the policy is watched, or should be.
func (p *Policy) Active() bool {
	return p.DeletedAt == nil && (p.State.Phase == registry.Enforced || p.State.Phase == registry.Violated)
}

// Render fills in the rendered spec. If it returns an error, the policy is unchanged.
func (p *Policy) Render(render Renderer) error {
	spec, err := render(&p.Policy)
	if err != nil {
		return err
	}
	p.Status.RenderedSpec = &spec
	return nil
}

// watched reports whether the policy has something that a rule can watch.
func (p *Policy) watched() bool {
	spec := p.Status.RenderedSpec
	return spec != nil && spec.Type == registry.TelemetrySpec
}

// note adds one of the policy's events.
func (p *Policy) note(ctx context.Context, tx *store.Tx, typ registry.EventType, details map[string]any) error {
	if details == nil {
		details = map[string]any{}
	}
	const insert = `insert into policy_events (policy_id, type, details) values ($1, $2, $3)`
	_, err := tx.Exec(ctx, insert, p.UUID(), typ, details)
	if err != nil {
		return fmt.Errorf("note %s: %w", typ, err)
	}
	return nil
}

// announce emits an event about the policy.
func (p *Policy) announce(ctx context.Context, tx *store.Tx, typ, instance, component string, violation *uuid.UUID) error {
	return tx.Emit(ctx, typ, p.ID, p.event(instance, component, violation))
}

func (p *Policy) event(instance, component string, violation *uuid.UUID) events.Policy {
	return events.Policy{ID: p.UUID(), Name: p.Name, Instance: instance, Component: component, Violation: violation}
}

const selectAlone = `select not exists (select from applications where deleted_at is null)
and not exists (select from policies where deleted_at is null and id <> $1)`

// announceFirst emits PolicyFirst if this is the first policy, since the PingSources may be suspended while there is
// none.
func (p *Policy) announceFirst(ctx context.Context, tx *store.Tx) error {
	var alone bool
	if err := tx.QueryRow(ctx, selectAlone, p.UUID()).Scan(&alone); err != nil {
		return fmt.Errorf("look for others: %w", err)
	}
	if !alone {
		return nil
	}
	return tx.Emit(ctx, events.PolicyFirst, events.Clocks, p.event(p.Instance, "", nil))
}

// follow asks the rule store to follow the policy.
func (p *Policy) follow(ctx context.Context, tx *store.Tx) error {
	p.RuleWanted++
	if err := p.save(ctx, tx); err != nil {
		return err
	}
	return p.announce(ctx, tx, events.PolicyChanged, p.Instance, "", nil)
}

func unknown(id string) error {
	return problem.New(problem.NotFound, "there is no policy %s", id)
}
