// Package archive moves old history, deleted applications and topology snapshots into the object store, and deletes old
// inbox marks. Without an object store it only deletes the snapshots beyond the number to keep.
package archive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/littoral-project/littoral/shared/archive"
	"github.com/littoral-project/littoral/shared/deadletter"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/objects/open"
	"github.com/littoral-project/littoral/shared/observe"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:    []string{events.Tick},
	Concurrency: 1,
	Class:       function.Batch,
	Timeout:     5 * time.Minute, // whole days may have gathered
	Needs:       []function.Need{function.Objects},
}

// Function is the task with its settings and stores; the archive is nil where none is set.
type Function struct {
	db      *store.DB
	archive *archive.Archive
	config  config
	log     *slog.Logger
	observe *observe.Recorder
}

type config struct {
	open.Config // of the archive

	After             time.Duration `envconfig:"ARCHIVE_AFTER" default:"720h"`         // of what names no other
	ApplicationsAfter time.Duration `envconfig:"ARCHIVE_APPLICATIONS_AFTER"`           // since they were deleted
	TopologyAfter     time.Duration `envconfig:"ARCHIVE_TOPOLOGY_AFTER"`               // of snapshots
	Snapshots         int           `envconfig:"ARCHIVE_SNAPSHOTS_KEPT" default:"250"` // at most, however young

	InboxKept time.Duration `envconfig:"INBOX_KEPT" default:"720h"` // a Broker does not deliver again after so long
}

// cleanupsKept is how long a removal that has ended may be reported again.
const cleanupsKept = 24 * time.Hour

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB, log: env.Log, observe: env.Observe}
	if err := env.Config(&f.config); err != nil {
		return nil, err
	}
	switch {
	case f.config.After <= 0:
		return nil, errors.New("ARCHIVE_AFTER must be positive, or what is still going on would be archived")
	case f.config.InboxKept <= 0:
		return nil, errors.New("INBOX_KEPT must be positive, or an event that comes again would be worked off again")
	}
	if n := f.config.Snapshots; n < 0 || n >= topology.MaxSnapshots {
		return nil, fmt.Errorf("ARCHIVE_SNAPSHOTS_KEPT must be less than %d: beyond that they are deleted, not archived",
			topology.MaxSnapshots)
	}
	objects, err := open.Store(f.config.Config, env.HTTP)
	if objects != nil {
		f.archive = archive.New(env.DB, objects)
	}
	return f, err
}

// Run moves batch after batch until nothing is old enough; when the time is up, the next tick goes on.
func (f *Function) Run(ctx context.Context) error {
	if err := f.forget(ctx); err != nil {
		return err
	}
	if f.archive == nil {
		_, err := topology.Forget(ctx, f.db, max(f.config.Snapshots, 1)) // the present one stays
		return err
	}
	err := f.move(ctx)
	return errors.Join(err, f.measure(context.WithoutCancel(ctx)))
}

// measure says by how much the oldest entry of the history is older than it should be.
func (f *Function) measure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, measuredWithin)
	defer cancel()
	oldest, err := history.Oldest(ctx, f.db)
	if err != nil {
		return err
	}
	overdue := max(time.Since(oldest)-f.config.After, 0)
	if oldest.IsZero() {
		overdue = 0
	}
	f.observe.Gauge("littoral.archive.overdue", "s", "By how much the oldest entry of the history is older than the archive lets it become", overdue.Seconds())
	return nil
}

// measuredWithin is the time for a look at one row, also when the time for the archive is up.
const measuredWithin = 2 * time.Second

func (f *Function) move(ctx context.Context) error {
	now := time.Now()
	for _, kind := range archive.Kinds {
		after := f.config.After
		switch {
		case kind == archive.Applications && f.config.ApplicationsAfter > 0:
			after = f.config.ApplicationsAfter
		case kind == archive.Topology && f.config.TopologyAfter > 0:
			after = f.config.TopologyAfter
		}
		lines, n := 0, 1
		for n > 0 {
			var err error
			if n, err = f.archive.Move(ctx, kind, now.Add(-after), f.config.Snapshots); err != nil {
				return err
			}
			lines += n
		}
		if lines > 0 {
			f.log.InfoContext(ctx, "archived", "kind", kind, "lines", lines)
		}
	}
	return nil
}

// forget deletes records that only say that something was done, after the time in which it may be repeated.
func (f *Function) forget(ctx context.Context) error {
	marks, err := f.db.ForgetReactions(ctx, f.config.InboxKept)
	if err != nil {
		return err
	}
	letters, err := deadletter.Forget(ctx, f.db, f.config.InboxKept)
	if err != nil {
		return err
	}
	if marks+letters > 0 {
		f.log.InfoContext(ctx, "forgot events that were worked off", "events", marks, "dead_letters", letters)
	}
	if err := f.db.ForgetClaims(ctx); err != nil {
		return err
	}
	_, err = job.ForgetCleanups(ctx, f.db, cleanupsKept)
	return err
}
