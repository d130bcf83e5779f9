// Package place finds places for components that have none.
package place

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

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
	Emits:    []string{events.ApplicationPlaced, events.ApplicationUnplaced, events.JobReady},
	Foreseen: []string{events.JobReady}, // policies are followed while the orchestrator works
	Timeout:  30 * time.Second,
	Memory:   "128Mi", // for each call ten thousand nodes, and the problem they make
}

// Function is the operation with its settings and store.
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

// React places the application that the event is about, one that was displaced together with all that were displaced
// with it. A changed topology, a removal that has ended and an application that was stopped or updated may have made
// room: then whatever fitted nowhere is tried again, and so it is from time to time. Only an update may move a component
// that has a place.
func (f *Function) React(ctx context.Context, tx *store.Tx, e cloudevents.Event) error {
	switch e.Type() {
	case events.TopologyChanged:
		news, err := events.Data[events.Topology](e)
		if err != nil {
			return err
		}
		return f.again(ctx, tx, sentence(news.Changes))
	case events.JobFinished:
		about, err := events.Data[events.Job](e)
		if err != nil {
			return err
		}
		if about.Type != string(job.Delete) {
			return nil // what was put up took room, it made none
		}
		return f.again(ctx, tx, "the removal of "+about.Component+" made room")
	}
	about, err := events.Data[events.Application](e)
	if err != nil {
		return err
	}
	switch e.Type() {
	case events.ApplicationWaiting:
		return f.again(ctx, tx, "it waited for some time")
	case events.ApplicationStopped:
		return f.again(ctx, tx, "stopping "+about.Name+" made room")
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
	return f.again(ctx, tx, "the update of "+about.Name+" may have made room")
}

// sentence tells the first changes of the infrastructure, which are the most urgent ones.
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

// asked says what a user asked for.
var asked = map[string]string{
	events.ApplicationSubmitted: "it was submitted",
	events.ApplicationUpdated:   "it was updated",
	events.ApplicationStarted:   "it was started",
}

// again tries whatever fitted nowhere, together, and whatever had to stay where a policy is violated; and it looks at the
// updates that nobody has looked at.
func (f *Function) again(ctx context.Context, tx *store.Tx, because string) error {
	if err := match.Lock(ctx, tx); err != nil { // or a decision that is under way would leave something waiting unseen
		return err
	}
	waiting, err := application.Waiting(ctx, tx)
	if err != nil {
		return err
	}
	for together := range slices.Chunk(waiting, match.MostTogether) {
		if err := match.PlaceAll(ctx, tx, together, f.config.Settings, because); err != nil {
			return err
		}
	}
	strained, err := application.Strained(ctx, tx)
	if err != nil {
		return err
	}
	for _, id := range strained {
		if err := match.Retry(ctx, tx, id, f.config.Settings); err != nil {
			return err
		}
	}
	overlooked, err := application.Overlooked(ctx, tx)
	if err != nil {
		return err
	}
	for _, id := range overlooked {
		if err := match.Place(ctx, tx, id, f.config.Settings, true, asked[events.ApplicationUpdated]); err != nil {
			return err
		}
	}
	return nil
}
