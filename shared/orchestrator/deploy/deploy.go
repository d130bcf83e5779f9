// Package deploy is what the functions deploy-* and sync-* of all orchestrators have in common. What differs is which
// orchestrator it is, and what else wakes its sync-*.
package deploy

import (
	"context"
	"errors"
	"net/http"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/linking"
	"github.com/littoral-project/littoral/shared/linking/carry"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/deployer"
	"github.com/littoral-project/littoral/shared/orchestrator/deployer/stored"
	"github.com/littoral-project/littoral/shared/orchestrator/dress"
)

// Spec declares a deploy-*.
func Spec() function.Spec {
	return function.Spec{
		Consumes: []string{events.JobReady}, Emits: stored.Emits, Class: function.Remote, Kubernetes: true,
		Needs: []function.Need{function.BusTokens},
	}
}

// SyncSpec declares a sync-*. watches are the objects of the orchestrator that wake it when they change.
func SyncSpec(watches ...function.Watch) function.Spec {
	s := function.Spec{
		Consumes: []string{events.Tick}, Emits: stored.Emits, Class: function.Batch,
		Timeout:    2 * time.Minute, // with the time between two ticks it stays under the lease of a job
		Kubernetes: true, Watches: watches, Needs: []function.Need{function.BusTokens},
	}
	if len(watches) == 0 {
		s.Concurrency = 1 // a second one at the same time would only find the same
	} else {
		s.Consumes = append(s.Consumes, events.ObjectAdded, events.ObjectUpdated, events.ObjectDeleted)
	}
	return s
}

// Remote is the declaration of a function that reaches its orchestrator by an address and secrets, with nothing of
// Kubernetes, and hands it compose files.
func Remote(s function.Spec, needs ...function.Need) function.Spec {
	s.Kubernetes, s.Needs, s.Class = false, append(needs, function.BusTokens), function.Compose
	return s
}

// opener makes an orchestrator from its settings and the wrapper for its HTTP calls.
type opener[Config any] = func(Config, func(http.RoundTripper) http.RoundTripper) (orchestrator.Orchestrator, error)

// Deployer carries out the jobs of one orchestrator.
type Deployer struct{ carrier *deployer.Deployer }

// New reads the settings. kind is what targets call the orchestrator.
func New[Config any](env *function.Env, kind string, open opener[Config]) (*Deployer, error) {
	c, err := carrier(env, kind, open)
	return &Deployer{c}, err
}

// Work takes the job under a lease, so that an agent that polls for it does not carry it out too, and reports the
// result after a short wait; the synchronisation sees what takes longer.
func (d *Deployer) Work(ctx context.Context, e cloudevents.Event) error {
	return d.carrier.Work(ctx, e)
}

// Syncer compares the jobs in the database with what one orchestrator reports.
type Syncer struct {
	carrier *deployer.Deployer
	users   func(ctx context.Context, copied uuid.UUID) ([]uuid.UUID, error) // the jobs that use a link
}

// NewSync reads the settings. kind is what targets call the orchestrator.
func NewSync[Config any](env *function.Env, kind string, open opener[Config]) (*Syncer, error) {
	c, err := carrier(env, kind, open)
	return &Syncer{c, func(ctx context.Context, copied uuid.UUID) ([]uuid.UUID, error) {
		return linking.Users(ctx, env.DB, copied)
	}}, err
}

// Work looks at every job at a tick, and at one job when a watched object of it changes. It does not believe the event
// about that but asks the orchestrator itself.
func (s *Syncer) Work(ctx context.Context, e cloudevents.Event) error {
	if e.Type() == events.Tick {
		return s.carrier.Sync(ctx)
	}
	label, err := events.ObjectLabel(e, orchestrator.LabelJob)
	if err != nil {
		return err
	}
	subject, err := uuid.Parse(label)
	if err != nil {
		return nil // not one of ours
	}
	users, err := s.users(ctx, subject)
	if err != nil {
		return err
	}
	for _, id := range append(users, subject) {
		err = errors.Join(err, s.carrier.SyncOne(ctx, id))
	}
	return err
}

func carrier[Config any](env *function.Env, kind string, open opener[Config]) (*deployer.Deployer, error) {
	var added dress.Settings
	if err := env.Config(&added); err != nil {
		return nil, err
	}
	var own deployer.Settings
	if err := errors.Join(env.Config(&own), added.Links.Check()); err != nil {
		return nil, err
	}
	return stored.Open(stored.Platform{
		DB: env.DB, Log: env.Log, Config: env.Config, Transport: env.Observe.Transport,
	}, kind, func(c Config, wrap func(http.RoundTripper) http.RoundTripper) (orchestrator.Orchestrator, error) {
		o, err := open(c, wrap)
		return carry.Orchestrator(dress.Orchestrator(o, added), env.DB, added.Links, own.Wait), err
	})
}
