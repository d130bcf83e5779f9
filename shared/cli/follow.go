package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/problem"
)

// goal is what a follower waits for.
type goal struct {
	name string
	// reached reports whether the application (nil when it is gone) has reached the goal; an error means that it never
	// will.
	reached func(*api.Application) (bool, error)
}

var available = goal{"available", func(a *api.Application) (bool, error) {
	switch {
	case a == nil:
		return false, errors.New("it was deleted meanwhile")
	case a.Desired == "stopped":
		return false, advise(errors.New("it is asked to stop, so it will not be available"),
			"Start it with: littoral start app %s", a.ID)
	case a.Desired == "deleted":
		return false, errors.New("it is being deleted, so it will not be available")
	}
	return a.Status == api.StatusAvailable, nil
}}

var finished = goal{"finished", func(a *api.Application) (bool, error) {
	if a == nil {
		return false, errors.New("it was deleted meanwhile")
	}
	if a.UpdatePending() {
		return false, nil // an update is not judged yet and may still change its jobs
	}
	for _, j := range a.Jobs {
		if j.State != "Finished" {
			return false, nil
		}
	}
	return true, nil
}}

var stopped = goal{"stopped", func(a *api.Application) (bool, error) {
	switch {
	case a == nil:
		return false, errors.New("it was deleted meanwhile")
	case a.Desired == "running":
		return false, advise(errors.New("it is meant to run, so it will not be stopped"),
			"Stop it with: littoral stop app %s", a.ID)
	}
	return a.Status == api.StatusStopped, nil
}}

var deleted = goal{"deleted", func(a *api.Application) (bool, error) {
	if a != nil && a.Desired != "deleted" {
		return false, advise(errors.New("nobody has asked to delete it"), "Delete it with: littoral delete app %s", a.ID)
	}
	return a == nil, nil
}}

// follower shows the steps of one application towards a goal: submitted, placed on which node and why, taken, deployed.
// On a terminal a progress bar is shown below.
type follower struct {
	*session
	id    string
	after int64 // id of the last entry that was shown

	name     string
	removing map[string]bool // jobs whose next end is a removal
	note     string          // what the status of the application does not show yet
}

// follow follows the application for a command and shows what happens after the history entry with the id after.
func (s *session) follow(ctx context.Context, id string, after int64, g goal) error {
	f := follower{session: s, id: id, after: after, removing: map[string]bool{}}
	return f.until(ctx, g)
}

// until shows what happens until the goal is reached.
func (f *follower) until(ctx context.Context, g goal) error {
	defer f.screen.clear()
	begun := f.now()
	var last *api.Application
	for {
		a, err := f.observe(ctx)
		switch {
		case err == nil:
			done, err := g.reached(a)
			if done && g.name == available.name {
				done = f.stands(ctx, a)
			}
			if done || err != nil {
				return f.end(g, a, f.now().Sub(begun), err)
			}
			last = a
			f.screen.status(progress(a, f.now().Sub(begun)))
		case ctx.Err() != nil:
			return f.late(ctx, g, last)
		case last == nil || !passing(err):
			return err // it never worked, or will not again
		default:
			f.screen.status("the server is away; trying again")
		}
		if f.wait(ctx) != nil {
			return f.late(ctx, g, last)
		}
	}
}

// observe returns the application, nil when it is gone, and shows what has happened. The application is read before the
// history, so that the history contains everything that led to its state.
func (f *follower) observe(ctx context.Context) (*api.Application, error) {
	a, err := f.client.Application(ctx, f.id)
	if problem.KindOf(err) == problem.NotFound {
		a, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	if a != nil {
		f.know(a)
	}
	for {
		entries, err := f.client.History(ctx, api.HistoryQuery{App: f.id, After: f.after})
		if err != nil {
			return nil, err
		}
		for i := range entries {
			f.after = entries[i].ID
			f.show(&entries[i])
		}
		if len(entries) == 0 {
			return a, nil
		}
	}
}

// stands reports whether what runs may stay where it is. A node that was drained a moment ago still runs its jobs until
// the server has noticed and moved them, and the status does not show that yet. So this asks telemetry directly. If
// telemetry does not answer, the status is believed.
func (f *follower) stands(ctx context.Context, a *api.Application) bool {
	now, err := f.client.Taxonomy(ctx)
	if err != nil {
		return ctx.Err() == nil // false if only our time is up
	}
	f.note = ""
	drained := map[api.Target]bool{}
	for _, p := range now.Places() {
		drained[api.Target{Cluster: p.Cluster, Node: p.Node}] = p.At.Drained()
	}
	for _, j := range a.Components() {
		if drained[api.Target{Cluster: j.Targets.Cluster, Node: j.Targets.Node}] {
			f.note = fmt.Sprintf("%s is yet to leave %s, which was drained", j.Component(), j.Targets)
			return false
		}
	}
	return true
}

// know remembers what the history entries do not say: the name, and which jobs are removals that began earlier.
func (f *follower) know(a *api.Application) {
	f.name = a.Name
	for i := range a.Jobs {
		if j := &a.Jobs[i]; j.Cleans != "" || (j.Type == "DeleteDeployment" && j.State != "Finished") {
			f.removing[j.ID] = true
		}
	}
}

func (f *follower) end(g goal, a *api.Application, took time.Duration, err error) error {
	if err != nil {
		return err
	}
	text := "gone"
	if a != nil {
		text = a.Message
	}
	if text == "" {
		text = "nothing of it runs"
	}
	f.say(g.name, f.name, fmt.Sprintf("%s (after %s)", text, span(took)))
	return nil
}

// late says what is still missing when the time is up, or passes on an interruption.
func (f *follower) late(ctx context.Context, g goal, a *api.Application) error {
	if a == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	err := fmt.Errorf("%s is not %s in time: it is %s, %s", a.Name, g.name, a.Status, cmp.Or(f.note, a.Message))
	return advise(err, "See why with: littoral describe app %s, or littoral explain app %s", a.ID, a.ID)
}

// passing reports whether the next try may succeed.
func passing(err error) bool {
	var away *api.Unreachable
	return errors.As(err, &away) || errors.Is(err, api.ErrBrokenOff) || problem.KindOf(err) == problem.Unavailable
}

func progress(a *api.Application, since time.Duration) string {
	if a == nil {
		return bar(1, 1, "gone", since)
	}
	var done int
	list := a.Components()
	for _, j := range list {
		if j.Available() == (a.Desired == "running") && (j.State == "Finished" || a.Desired == "running") {
			done++
		}
	}
	return bar(done, len(list), strings.TrimSuffix(a.Status+" "+a.Message, " "), since)
}

// say writes one step: what happened to whom, and the rest.
func (f *follower) say(what, whom, rest string) {
	if whom != "" && rest != "" {
		whom += ": "
	}
	f.screen.line("%-11s %s%s", what, whom, rest)
}

// show prints a history entry as a step, if it is of interest to people.
func (f *follower) show(e *api.Entry) {
	switch e.Event {
	case recorded.ApplicationSubmitted:
		f.say("submitted", f.name, e.Message)
	case recorded.ApplicationPlaced, recorded.ApplicationDisplaced, recorded.ApplicationDeleted:
		// the entries of the jobs say it, or the end does
	case recorded.ApplicationUnplaced:
		f.say("waiting", f.name, e.Message)
	case recorded.ApplicationStopped:
		f.say("stopping", f.name, e.Message)
	case recorded.ApplicationStarted, recorded.ApplicationUpdated, recorded.ApplicationUnknown, recorded.ApplicationReturned:
		_, what, _ := strings.Cut(e.Event, ".")
		f.say(what, f.name, e.Message)
	case recorded.JobSubmitted:
		// application.submitted says it once for all
	case recorded.JobCleanup:
		f.removing[e.JobID] = true
		f.say("cleaning", e.Component, e.Message)
	case recorded.JobStopped:
		f.removing[e.JobID] = true
		f.say("stopping", e.Component, e.Message)
	case recorded.JobPlaced:
		f.say("placed", e.Component+" "+e.Message, "")
	case recorded.JobPromoted, recorded.JobTakenOver, recorded.JobAdopted, recorded.JobProgressing, recorded.JobFinished:
		f.worked(e)
	case recorded.JobWaiting:
		// application.unplaced says it once for all
	default:
		_, what, _ := strings.Cut(e.Event, ".")
		f.say(what, e.Component, e.Message)
	}
}

// worked prints what an agent did; for a removal only its end.
func (f *follower) worked(e *api.Entry) {
	removal := f.removing[e.JobID]
	switch {
	case removal && e.Event == recorded.JobFinished:
		delete(f.removing, e.JobID)
		f.say("gone", e.Component, e.Message)
	case removal:
	case e.Event == recorded.JobFinished:
		f.say("deployed", e.Component, e.Message)
	case e.Event == recorded.JobProgressing:
		f.say("deploying", e.Component, e.Message)
	default:
		f.say("taken", e.Component, e.Message)
	}
}
