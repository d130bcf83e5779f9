// Package application keeps applications: what was handed in, what is wanted of it, and how its jobs stand.
//
// An application is the contract's job group. Everything that changes one goes through a transaction that also changes
// its jobs, writes history and announces the change.
package application

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/job"
)

// Desired is what its user wants of an application.
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
	Deploying Status = "Deploying" // placed, not all of it runs; or updated, and the matchmaker has not looked yet
	Available Status = "Available" // every component runs, say their orchestrators
	Degraded  Status = "Degraded"  // some component failed or runs badly
	Unknown   Status = "Unknown"   // some component is where nobody answers
	Stopping  Status = "Stopping"
	Finished  Status = "Stopped"
	Deleting  Status = "Deleting"
	Gone      Status = "Deleted" // said to whoever deletes it, and never after
)

// Application is one instance of a descriptor (contract: JobGroup).
type Application struct {
	ID          uuid.UUID  `db:"id"`
	Name        string     `db:"name"`
	Description string     `db:"description"`
	Namespace   string     `db:"namespace"`
	Descriptor  string     `db:"descriptor"` // as handed in
	Desired     Desired    `db:"desired"`
	Version     int64      `db:"version"` // grows with each change of the descriptor
	Judged      int64      `db:"judged"`  // the version that the matchmaker has looked at; of a stopped one it says nothing
	Owner       string     `db:"owner"`   // the caller who handed it in
	CreatedAt   time.Time  `db:"created_at"`
	UpdatedAt   time.Time  `db:"updated_at"`
	Jobs        []*job.Job `db:"-"`
	Warnings    []string   `db:"-"` // of the descriptor that was just handed in; of a stored one it says nothing

	parsed *descriptor.Application // of Descriptor, once it was asked for
	gone   bool                    // it was forgotten by this very call
}

// Parsed returns the descriptor in normal form. It is read once and shared: nobody may change it.
func (a *Application) Parsed() (*descriptor.Application, error) {
	if a.parsed == nil {
		parsed, err := descriptor.ParseStored([]byte(a.Descriptor))
		if err != nil {
			return nil, fmt.Errorf("stored descriptor: %w", err)
		}
		a.parsed = parsed
	}
	return a.parsed, nil
}

// Namespace returns where the objects of an application live: its name and the first eight digits of its id, so that two
// instances never meet.
func Namespace(name string, id uuid.UUID) string { return name + "-" + id.String()[:8] }

// ETag names the version. That grows with the descriptor alone: how the jobs fare changes nothing of what a caller who
// changes the application has to know.
func (a *Application) ETag() string { return function.VersionTag(a.Version) }

// MarshalJSON writes the contract's JobGroup with namespace, desired, status, message, version and judged added; and to what
// answers a descriptor, what is odd about that.
func (a *Application) MarshalJSON() ([]byte, error) {
	status, message := a.Status()
	jobs := a.Jobs
	if jobs == nil {
		jobs = []*job.Job{}
	}
	return json.Marshal(struct {
		ID          uuid.UUID  `json:"id"`
		CreatedAt   time.Time  `json:"created_at"`
		UpdatedAt   time.Time  `json:"updated_at"`
		Name        string     `json:"appName"`
		Description string     `json:"appDescription"`
		Namespace   string     `json:"namespace"`
		Desired     Desired    `json:"desired"`
		Status      Status     `json:"status"`
		Message     string     `json:"message"`
		Version     int64      `json:"version"`
		Judged      int64      `json:"judged"`
		Owner       string     `json:"owner"`
		Jobs        []*job.Job `json:"jobs"`
		Warnings    []string   `json:"warnings,omitempty"`
	}{
		a.ID, a.CreatedAt, a.UpdatedAt, a.Name, a.Description, a.Namespace, a.Desired, status, message, a.Version, a.Judged,
		a.Owner, jobs, a.Warnings,
	})
}

// Status sums up the jobs, with a line on what it waits for. What an update took out of an application that is meant to run
// is no component of it any more: where it cannot be removed now, that keeps nothing else waiting.
func (a *Application) Status() (Status, string) {
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
	case a.Judged < a.Version: // what runs may have to leave its place yet
		return Deploying, "the update is yet to be looked at"
	case available == live && live > 0:
		return Available, runs
	}
	return Deploying, runs
}

// left says that something may run yet at places that components have left: nobody waits for that.
func left(former int) string {
	if former == 1 {
		return "1 former copy still to be removed"
	}
	return fmt.Sprintf("%d former copies still to be removed", former)
}

// still says what is to be removed yet, and what that waits for.
func still(live, gone int, note string) string {
	text := fmt.Sprintf("%d of %d components still to be removed", live, live+gone)
	if note != "" {
		text += "; " + note
	}
	return text
}
