// Package webhook calls the address that a violated policy names.
package webhook

import (
	"context"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/webhook"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:  []string{events.WebhookRequested},
	NoPrewake: true,
	Class:     function.Remote,
	Needs:     []function.Need{function.ClientCredentials},
}

// Function is the worker with its store.
type Function struct {
	db    *store.DB
	calls *webhook.Client
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	var c webhook.Config
	if err := env.Config(&c); err != nil {
		return nil, err
	}
	calls, err := webhook.New(c, env.HTTP)
	return &Function{env.DB, calls}, err
}

// claimed is how long one call may take.
const claimed = time.Minute

// Work makes the call once for each violation. A failure that may pass is returned, so that the Broker delivers again
// with backoff, and finally keeps the event as a dead letter. After a crash the call may be made once more; whoever is
// called sees the same id again.
func (f *Function) Work(ctx context.Context, e cloudevents.Event) error {
	about, err := events.Data[events.Policy](e)
	if err != nil || about.Violation == nil {
		return err
	}
	call, claim, err := f.claim(ctx, *about.Violation)
	if err != nil || call == nil {
		return err
	}
	if err := claim.Do(ctx, func(ctx context.Context) error { return f.calls.Do(ctx, *call) }); err != nil {
		return f.db.Release(ctx, claim, err)
	}
	return f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		a, err := policies.LockAction(ctx, tx, *about.Violation) // before its claim, as claim does
		if err != nil {
			return err
		}
		if held, err := tx.Complete(ctx, claim); err != nil || !held || a == nil || a.Over() {
			return err
		}
		return a.Finish(ctx, tx, policies.Done, "called "+call.Method+" "+call.URL)
	})
}

// claim returns the call that is to be made; nil if none is.
func (f *Function) claim(ctx context.Context, violation uuid.UUID) (call *webhook.Call, claim *store.Claim, err error) {
	err = f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		call, claim = nil, nil
		a, err := policies.LockAction(ctx, tx, violation)
		if err != nil || a == nil || a.Over() {
			return err
		}
		p, past, err := a.Due(ctx, tx)
		switch {
		case err != nil:
			return err
		case past != "":
			return a.Finish(ctx, tx, policies.Skipped, past)
		case p.Action.URL == "":
			return a.Finish(ctx, tx, policies.Skipped, "the policy names no address any more")
		}
		if claim, err = tx.Claim(ctx, "webhook of violation "+violation.String(), claimed); err != nil {
			return err
		}
		body, err := a.Violation.Body(p.Action.ExtraParams)
		if err != nil {
			return err
		}
		call = &webhook.Call{
			Method: p.Action.HTTPMethod, URL: p.Action.URL, ID: a.ID.String(), Body: body, Query: registry.Flatten(body),
			Token: p.Action.IncludeAccessToken,
		}
		return nil
	})
	return call, claim, err
}
