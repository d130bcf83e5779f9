// Package application stores applications: the descriptor that was handed in, whether it should run, and the state of
// its jobs.
//
// An application is the contract's job group. Every change of one is made in a transaction that also changes its jobs,
// writes history and announces the change.
package application

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/dialect"
	"github.com/littoral-project/littoral/shared/etag"
	"github.com/littoral-project/littoral/shared/job"
)

// Desired is what the user wants of an application.
type Desired string

// What can be wanted.
const (
	Running Desired = "running"
	Stopped Desired = "stopped"
	Deleted Desired = "deleted"
)

// Status sums up the jobs of an application.
type Status string

// The statuses, as "littoral get apps" shows them.
const (
	Pending   Status = "Pending"   // some component has no place
	Deploying Status = "Deploying" // placed, but not all of it runs; or updated, and not yet seen by the matchmaker
	Available Status = "Available" // every component runs, as their orchestrators report
	Degraded  Status = "Degraded"  // some component failed or runs badly
	Unknown   Status = "Unknown"   // some component is at a place that does not answer
	Stopping  Status = "Stopping"
	Finished  Status = "Stopped"
	Deleting  Status = "Deleting"
	Gone      Status = "Deleted" // only in the answer to its deletion
)

// Application is one instance of a descriptor (contract: JobGroup).
type Application struct {
	ID          uuid.UUID        `db:"id"`
	Name        string           `db:"name"`
	Description string           `db:"description"`
	Namespace   string           `db:"namespace"`
	Dialect     appmodel.Dialect `db:"dialect"`    // the language of Descriptor
	Descriptor  string           `db:"descriptor"` // as handed in

	// Needs is what components leave out and their compose files ask for, as they were read when the descriptor was handed in.
	Needs []appmodel.ComposeNeeds `db:"compose_needs"`

	Desired        Desired           `db:"desired"`
	Version        int64             `db:"version"`      // grows with each change of the descriptor
	HandledVersion int64             `db:"judged"`       // the version that the matchmaker has handled; meaningless for a stopped application
	Owner          string            `db:"owner"`        // the caller who handed it in
	Unwatched      map[string]string `db:"unwatched"`    // policies that cannot be watched, by name or path, and why
	UnwatchedAt    *time.Time        `db:"unwatched_at"` // since when there are any
	Away           *Away             `db:"away"`         // while Desired is Elsewhere; nil when only the lease of this controller is over
	CreatedAt      time.Time         `db:"created_at"`
	UpdatedAt      time.Time         `db:"updated_at"`
	Jobs           []*job.Job        `db:"-"`
	Warnings       []string          `db:"-"` // about the descriptor that was just handed in; not stored

	parsed *appmodel.Application // Descriptor parsed, once Parsed was called
	gone   bool                  // it was deleted by this very call
}

// Parsed returns the descriptor in normal form. It is parsed once and shared, so callers must not change it.
func (a *Application) Parsed() (*appmodel.Application, error) {
	if a.parsed == nil {
		parsed, err := stored(a.Dialect, a.Descriptor, a.Needs)
		if err != nil {
			return nil, fmt.Errorf("stored descriptor: %w", err)
		}
		a.parsed = parsed
	}
	return a.parsed, nil
}

// stored reads a descriptor that was accepted before, with what its compose files were found to ask for then.
func stored(d appmodel.Dialect, descriptor string, needs []appmodel.ComposeNeeds) (*appmodel.Application, error) {
	app, err := dialect.DecodeStored(d, []byte(descriptor))
	if err != nil {
		return nil, err
	}
	for _, n := range needs {
		app.Derive(n)
	}
	return app, nil
}

// Namespace returns the namespace for the objects of an application: its name and the first eight digits of its id, so
// that two instances never meet.
func Namespace(name string, id uuid.UUID) string { return name + "-" + id.String()[:8] }

// ETag names the version, which only changes with the descriptor: whoever changes an application need not know how its
// jobs fare.
func (a *Application) ETag() string { return etag.Of(a.Version) }

// Status sums up the jobs, with a line on what the application waits for. A component that an update took out no longer
// counts: if it cannot be removed now, nothing else waits for that.
func (a *Application) Status() (Status, string) {
	if a.Desired == Elsewhere {
		return a.awayStatus()
	}
	var unplaced, degraded, unknown, available, gone, out, live, former int
	var note string
	for _, j := range a.Jobs {
		switch {
		case j.Cleans != nil:
			former++
			continue
		case j.Gone():
			gone++
			continue
		case a.Desired == Running && !j.Live():
			out++
			continue
		}
		live++
		switch {
		case j.Available():
			available++
		case j.Unknown() != "":
			unknown++
			note = j.Component + ": " + j.Unknown()
		case j.Type == job.Delete:
		case j.State == job.Degraded:
			degraded++
			note = j.Component + " is degraded at " + j.Target.String()
			if why := j.Wrong(); why != "" {
				note += ": " + why
			}
		case !j.Placed():
			unplaced++
			note = j.Component + " waits for a place"
		}
	}
	runs := fmt.Sprintf("%d of %d components run", available, live)
	if out > 0 {
		runs += fmt.Sprintf("; %d more still to be removed", out)
	}
	switch {
	case a.gone && live == 0 && former > 0:
		return Gone, "gone; " + left(former)
	case a.gone && live == 0:
		return Gone, "gone"
	case a.gone:
		return Gone, "gone; " + still(live, gone, note)
	case a.Desired == Deleted:
		return Deleting, still(live, gone, note)
	case a.Desired == Stopped && live == 0 && former > 0:
		return Finished, left(former)
	case a.Desired == Stopped && live == 0:
		return Finished, ""
	case a.Desired == Stopped:
		return Stopping, still(live, gone, note)
	case unplaced > 0:
		return Pending, note
	case degraded > 0:
		return Degraded, note
	case unknown > 0:
		return Unknown, note
	case a.HandledVersion < a.Version: // what runs may still have to leave its place
		return Deploying, "the update is yet to be looked at"
	case available == live && live > 0:
		return Available, runs
	}
	return Deploying, runs
}

// left tells of copies that may still run at former places. Nothing waits for them.
func left(former int) string {
	if former == 1 {
		return "1 former copy still to be removed"
	}
	return fmt.Sprintf("%d former copies still to be removed", former)
}

// still tells what has not been removed yet, and what that waits for.
func still(live, gone int, note string) string {
	text := fmt.Sprintf("%d of %d components still to be removed", live, live+gone)
	if note != "" {
		text += "; " + note
	}
	return text
}
