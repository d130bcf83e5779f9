package application

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

type key struct {
	component string
	replica   int
}

// update gives an application a new descriptor. Only what differs is touched: a component with other objects is replaced where
// it runs, one with other requirements is checked by the matchmaker, a new one waits for a place, and one that is gone is
// removed. Of a stopped application nothing runs until it is started. The error is NotFound, or Conflict while it is being
// deleted.
func update(
	ctx context.Context, tx *store.Tx, id uuid.UUID, document []byte, app *appmodel.Application, by authorship,
	lostAfter time.Duration,
) (*Application, error) {
	a, err := lockHere(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	if a.Desired == Deleted {
		return nil, problem.New(problem.Conflict, "application %s is being deleted", id)
	}
	if app.Name != "" && app.Name != a.Name {
		return nil, nameChanged("name", app.Name, a.Name)
	}
	if app.Dialect != a.Dialect {
		return nil, problem.New(problem.Conflict, "application %s is written in %s, not in %s", id, a.Dialect, app.Dialect)
	}
	warnings := problem.Texts(registry.Warnings(app))
	if string(document) == a.Descriptor {
		return answer(ctx, tx, id, warnings)
	}
	changed, err := a.reconcile(ctx, tx, a.wanted(app, lostAfter))
	if err != nil {
		return nil, err
	}
	if before, err := a.Parsed(); err == nil { // else nobody can tell
		if others := Beside(before, app); len(others) > 0 {
			changed = append(changed, "other "+strings.Join(others, ", "))
		}
	}
	err = tx.QueryRow(ctx, updateDescriptor, a.ID, document, app.Description, app.Needs).Scan(&a.Version, &a.UpdatedAt)
	if err != nil {
		return nil, fmt.Errorf("store descriptor: %w", err)
	}
	a.Descriptor, a.Needs, a.parsed, a.Warnings = string(document), app.Needs, app, warnings // what is announced is about this one
	message := "no component differs"
	if len(changed) > 0 {
		message = strings.Join(changed, ", ")
	}
	if by.restores != nil {
		message = fmt.Sprintf("back to revision %d: %s", *by.restores, message)
	}
	a.revise(tx, by, message)
	if err := a.announceDescriptor(ctx, tx, events.ApplicationUpdated, recorded.ApplicationUpdated, message); err != nil {
		return nil, err
	}
	return answer(ctx, tx, id, warnings)
}

// Beside lists the differences between two descriptors that affect no job, such as in their policies.
func Beside(before, now *appmodel.Application) (what []string) {
	add := func(name string, differs bool) {
		if differs {
			what = append(what, name)
		}
	}
	// of a component that both have
	differs := func(part func(*appmodel.Component) any) bool {
		return slices.ContainsFunc(now.Components, func(c appmodel.Component) bool {
			was := before.Component(c.Name)
			return was != nil && !reflect.DeepEqual(part(was), part(&c))
		})
	}
	add("description", before.Description != now.Description)
	add("profile", before.Profile != now.Profile)
	add("policies", !reflect.DeepEqual(before.Policies, now.Policies) ||
		differs(func(c *appmodel.Component) any { return c.Policies }))
	add("communication", differs(func(c *appmodel.Component) any { return c.Communication }))
	add("near", differs(func(c *appmodel.Component) any { return c.Near }))
	add("scaling", differs(func(c *appmodel.Component) any { return c.Scaling }))
	add("targets", differs(func(c *appmodel.Component) any { return c.Targets }))
	return what
}

// answer returns the application as it is stored now, with the warnings about the descriptor that was handed in.
func answer(ctx context.Context, tx *store.Tx, id uuid.UUID, warnings []string) (*Application, error) {
	a, err := Get(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	a.Warnings = warnings
	return a, nil
}

// reconcile brings the jobs to what is wanted and says what changed.
func (a *Application) reconcile(ctx context.Context, tx *store.Tx, list []want) ([]string, error) {
	have := make(map[key]*job.Job, len(a.Jobs))
	for _, j := range a.Jobs {
		have[key{j.Component, j.Replica}] = j
	}
	var changed []string
	for _, w := range list {
		k := key{w.component, w.replica}
		j := have[k]
		delete(have, k)
		what, err := a.reconcileOne(ctx, tx, j, w)
		if err != nil {
			return nil, err
		}
		if what != "" {
			changed = append(changed, job.ReplicaName(w.component, w.replica)+" "+what)
		}
	}
	for _, j := range a.Jobs { // in their order, not the map's
		if have[key{j.Component, j.Replica}] == nil || !j.Live() {
			continue
		}
		if err := j.Stop(ctx, tx); err != nil {
			return nil, err
		}
		changed = append(changed, job.ReplicaName(j.Component, j.Replica)+" removed")
	}
	return changed, nil
}

func (a *Application) reconcileOne(ctx context.Context, tx *store.Tx, j *job.Job, w want) (what string, err error) {
	switch {
	case j == nil:
		return "added", a.add(ctx, tx, w)
	case a.Desired == Running && !j.Live(): // it was stopped or taken out before
		what = "added"
		if err := j.Restart(ctx, tx); err != nil {
			return "", err
		}
	case j.Type == job.Delete && !j.Gone():
		return "", nil // the job keeps its content for the removal; Start compares again
	}
	switch {
	case !reflect.DeepEqual(j.Instruction.Contents, w.instruction.Contents):
		j.LostAfter = w.lostAfter
		return cmp.Or(what, "replaced"), j.Replace(ctx, tx, w.instruction)
	case !reflect.DeepEqual(normal(j.Instruction), normal(w.instruction)) || j.LostAfter != w.lostAfter:
		j.LostAfter = w.lostAfter
		return cmp.Or(what, "changed"), j.Require(ctx, tx, w.instruction)
	}
	return what, nil
}

// normal makes two instructions comparable of which one was stored: an empty list or map equals none. The component's
// node label is left out, since only the replica's own value, in its labels, concerns it.
func normal(in job.Instruction) job.Instruction {
	in.Requirements.NodeLabel = nil
	if len(in.Labels) == 0 {
		in.Labels = nil
	}
	if len(in.Requirements.Devices) == 0 {
		in.Requirements.Devices = nil
	}
	if len(in.Requirements.Resources) == 0 {
		in.Requirements.Resources = nil
	}
	return in
}

func nameChanged(path, given, name string) error {
	f := problem.Field{Path: path, Detail: fmt.Sprintf("is %q, but the application is %q: a name cannot change", given, name)}
	return &problem.Error{Kind: problem.Invalid, Detail: "this is another application", Fields: []problem.Field{f}}
}
