// Package place finds places for components that have none.
package place

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{
		events.ApplicationSubmitted, events.ApplicationUpdated, events.ApplicationStarted, events.ApplicationDisplaced,
		events.ApplicationWaiting, events.TopologyChanged, events.JobFinished, events.ApplicationStopped,
	},
	Emits: []string{
		events.ApplicationPlaced, events.ApplicationUnplaced, events.ApplicationWaiting, events.JobReady,
	},
	Foreseen: []string{events.JobReady}, // policies are followed while the orchestrator works
	Timeout:  30 * time.Second,
	Memory:   "128Mi", // for each call ten thousand nodes, and the problem they make
}

// Function is the reaction with its settings and store.
type Function struct {
	db     *store.DB
	config config
}

type config struct {
	match.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, env.Config(&f.config)
}

// React places the application that the event is about; if it was displaced, together with all others that were. After
// a change of the topology, the end of a removal, or the stop or update of an application there may be room: then
// everything that fitted nowhere is tried again, as it is from time to time. Only an update may move a component that
// has a place.
func (f *Function) React(ctx context.Context, tx *store.Tx, e cloudevents.Event) error {
	switch e.Type() {
	case events.TopologyChanged:
		news, err := events.Data[events.Topology](e)
		if err != nil {
			return err
		}
		return f.again(ctx, tx, uuid.Nil, sentence(news.Changes))
	case events.JobFinished:
		about, err := events.Data[events.Job](e)
		if err != nil {
			return err
		}
		if about.Type != string(job.Delete) {
			return nil // a deployment has ended, which makes no room
		}
		return f.again(ctx, tx, uuid.Nil, "the removal of "+about.Component+" made room")
	}
	about, err := events.Data[events.Application](e)
	if err != nil {
		return err
	}
	switch e.Type() {
	case events.ApplicationWaiting:
		return f.again(ctx, tx, about.ID, cmp.Or(about.Reason, "it waited for some time"))
	case events.ApplicationStopped:
		return f.again(ctx, tx, uuid.Nil, "stopping "+about.Name+" made room")
	case events.ApplicationDisplaced:
		displaced, err := match.Unjudged(ctx, tx, about.ID)
		if err != nil {
			return err
		}
		because := about.Reason
		if n := len(displaced); n > 1 {
			because = fmt.Sprintf("%d applications needed places at once", n)
		}
		return match.PlaceAll(ctx, tx, displaced, f.config.Settings, because)
	}
	updated := e.Type() == events.ApplicationUpdated
	if err := match.Place(ctx, tx, about.ID, f.config.Settings, updated, asked[e.Type()]); err != nil || !updated {
		return err
	}
	return f.again(ctx, tx, uuid.Nil, "the update of "+about.Name+" may have made room")
}

// sentence names the first, most urgent changes of the topology.
func sentence(changes []events.TopologyChange) string {
	const told = 3
	var parts []string
	for _, c := range changes[:min(len(changes), told)] {
		parts = append(parts, c.Place()+" "+c.Change)
	}
	if more := len(changes) - told; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return "the infrastructure changed: " + strings.Join(parts, ", ")
}

// asked describes a user's request by event type.
var asked = map[string]string{
	events.ApplicationSubmitted: "it was submitted",
	events.ApplicationUpdated:   "it was updated",
	events.ApplicationStarted:   "it was started",
}

// mostAlone bounds how many applications that are looked at one by one share a transaction.
const mostAlone = 20

// again tries, together, the components that fitted nowhere and those that had to stay where a policy is violated; it
// also handles pending updates. It begins with the application from and handles only as many as fit into one call. Its
// own event starts the next call for the others, so the results for these are kept whatever happens to those.
func (f *Function) again(ctx context.Context, tx *store.Tx, from uuid.UUID, because string) error {
	if err := match.Lock(ctx, tx); err != nil { // otherwise this could miss what a decision in progress leaves waiting
		return err
	}
	w, err := look(ctx, tx, from)
	if err != nil {
		return err
	}
	if err := match.PlaceAll(ctx, tx, w.waiting, f.config.Settings, because); err != nil {
		return err
	}
	for _, id := range w.misplaced {
		if err := match.Retry(ctx, tx, id, f.config.Settings); err != nil {
			return err
		}
	}
	for _, id := range w.overlooked {
		if err := match.Place(ctx, tx, id, f.config.Settings, true, asked[events.ApplicationUpdated]); err != nil {
			return err
		}
	}
	if w.next == uuid.Max {
		return nil
	}
	return tx.Emit(ctx, events.ApplicationWaiting, w.next.String(), events.Application{ID: w.next, Reason: because})
}

// work is what one call looks at again: everything before the application next, where uuid.Max comes after all.
type work struct {
	waiting, misplaced, overlooked []uuid.UUID
	next                           uuid.UUID
}

// look finds the work from that application on.
func look(ctx context.Context, tx *store.Tx, from uuid.UUID) (work, error) {
	w := work{next: uuid.Max}
	order := func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) } // as Postgres has it
	lists := []struct {
		find func(context.Context, store.Querier, uuid.UUID, int) ([]uuid.UUID, error)
		most int
		into *[]uuid.UUID
	}{
		{application.Waiting, match.MostTogether, &w.waiting},
		{application.Misplaced, mostAlone, &w.misplaced},
		{application.Overlooked, mostAlone, &w.overlooked},
	}
	for _, l := range lists {
		found, err := l.find(ctx, tx, from, l.most+1)
		if err != nil {
			return w, err
		}
		if len(found) > l.most && order(found[l.most], w.next) < 0 {
			w.next = found[l.most]
		}
		*l.into = found
	}
	for _, l := range lists {
		end, _ := slices.BinarySearchFunc(*l.into, w.next, order)
		*l.into = (*l.into)[:end]
	}
	return w, nil
}
