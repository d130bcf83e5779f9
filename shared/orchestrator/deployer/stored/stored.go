// Package stored keeps the jobs of a deployer in Postgres, under the lease that agents take them under and by the same
// transitions (shared/docs/contracts.md §1.6, §1.7). What a newcomer gets wrong: nothing outside Postgres is touched here,
// since a transaction may run again.
package stored

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/deployer"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Emits lists the events that carrying out jobs may produce.
var Emits = []string{events.JobFinished, events.JobDegraded, events.ResourceChanged, events.ApplicationDeleted}

// Platform is what a deployer is made from.
type Platform struct {
	DB        *store.DB
	Log       *slog.Logger
	Config    func(into any) error                      // reads the settings
	Transport func(http.RoundTripper) http.RoundTripper // around calls to the orchestrator
}

// Open returns a deployer. kind is what targets call the orchestrator; open makes it from its settings and the wrapper
// for its HTTP calls. Nothing is dialled.
func Open[Config any](
	p Platform, kind string,
	open func(Config, func(http.RoundTripper) http.RoundTripper) (orchestrator.Orchestrator, error),
) (*deployer.Deployer, error) {
	d := &deployer.Deployer{Jobs: New(p.DB), Log: p.Log, Kind: kind}
	var config Config
	if err := errors.Join(p.Config(&d.Settings), p.Config(&config)); err != nil {
		return nil, err
	}
	var err error
	d.Orchestrator, err = open(config, p.Transport)
	return d, err
}

// Jobs are those in a database.
type Jobs struct{ db *store.DB }

var _ deployer.Jobs = (*Jobs)(nil)

// New returns the jobs of the database.
func New(db *store.DB) *Jobs { return &Jobs{db} }

// Get reads a job.
func (s *Jobs) Get(ctx context.Context, id uuid.UUID) (*job.Job, error) {
	return job.Get(ctx, s.db, id)
}

// Executable lists what the owner may take now.
func (s *Jobs) Executable(ctx context.Context, kind, owner string) ([]*job.Job, error) {
	return job.Executable(ctx, s.db, kind, owner)
}

// HeldIn names the clusters in which the owner has jobs.
func (s *Jobs) HeldIn(ctx context.Context, kind, owner string) ([]string, error) {
	return job.HeldIn(ctx, s.db, kind, owner)
}

// Held lists the owner's jobs.
func (s *Jobs) Held(
	ctx context.Context, kind, owner string, after uuid.UUID, subject *uuid.UUID, cluster string, most int,
) (jobs []*job.Job, more bool, err error) {
	return job.Held(ctx, s.db, kind, owner, after, subject, cluster, most)
}

// OnLostNode reports whether the node of the job counts as lost.
func (s *Jobs) OnLostNode(ctx context.Context, id uuid.UUID) (bool, error) {
	return application.OnLostNode(ctx, s.db, id)
}

// Claim takes the job.
func (s *Jobs) Claim(ctx context.Context, id uuid.UUID, epoch int64, owner string, lease time.Duration) (j *job.Job, err error) {
	err = s.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		var err error
		j, err = job.ClaimEpoch(ctx, tx, id, epoch, owner, lease)
		return err
	})
	return j, err
}

// Report stores the result of the work on j, unless the job has changed since it was read.
func (s *Jobs) Report(ctx context.Context, j *job.Job, result job.Report, lease time.Duration) (o deployer.Outcome, err error) {
	err = s.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		o = deployer.Stored
		if j.Type == job.Delete {
			application.LockOfRemoval(tx, j.ID)
		}
		now, err := job.Lock(ctx, tx, j.ID)
		switch {
		case problem.KindOf(err) == problem.NotFound:
			o = deployer.Fenced
			return nil
		case err != nil:
			return err
		case now.OwnerID != result.OwnerID || now.Epoch != j.Epoch:
			o = deployer.Fenced
			return nil
		case now.State == job.Created:
			o = deployer.Waiting // its change has emitted an event
			return nil
		case !deployer.SameWork(now, j):
			o = deployer.Changed
			return nil
		}
		_, err = application.Report(ctx, tx, result, lease)
		return err
	})
	return o, err
}

// Observe stores what is seen of a copy.
func (s *Jobs) Observe(ctx context.Context, seen job.Observation, lease time.Duration) error {
	return s.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := job.Observe(ctx, tx, seen, lease)
		return err
	})
}
