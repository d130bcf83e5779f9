// Package retry tries again what waits for a place, or for a better one, when there may be room.
package retry

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{
		events.ApplicationWaiting, events.ApplicationStopped, events.JobFinished, events.TopologyChanged,
	},
	Emits: []string{
		events.ApplicationPlaced, events.ApplicationUnplaced, events.ApplicationWaiting, events.JobReady,
	},
	NoPrewake: true,           // what it places has waited for long; the call that made room does not wait for it
	Class:     function.Large, // for each call ten thousand nodes, and the problem they make
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

// React begins with the application that the event names as the next one in turn; after a change of the topology, the end
// of a removal or the stop of an application it begins with the first one. What waits for room is tried again only if it
// could go where room was made; where nodes have only gone that is nowhere.
func (f *Function) React(ctx context.Context, tx *store.Tx, e cloudevents.Event) error {
	c, err := causeOf(e)
	if err != nil || c.because == "" {
		return err
	}
	if c.room != nil && len(c.room.On) == 0 {
		return match.PlacePendingUpdates(ctx, tx, f.config.Settings, c.because)
	}
	return match.RetryPending(ctx, tx, c.from, f.config.Settings, c.because, c.room)
}

// cause says with which application to begin, what made room, which is empty if nothing did, and for whom; nil = anybody.
type cause struct {
	from    uuid.UUID
	because string
	room    *match.Room
}

func causeOf(e cloudevents.Event) (cause, error) {
	switch e.Type() {
	case events.TopologyChanged:
		news, err := events.Data[events.Topology](e)
		c := cause{because: sentence(news.Changes)}
		if on, anywhere := topology.Room(news.Changes); !anywhere {
			c.room = &match.Room{On: on}
		}
		return c, err
	case events.JobFinished:
		about, err := events.Data[events.Job](e)
		if about.Type != string(job.Delete) {
			return cause{}, err // a deployment has ended, which makes no room
		}
		c := cause{because: "the removal of " + about.Component + " made room"}
		if about.Node != "" {
			c.room = &match.Room{On: [][2]string{{about.Cluster, about.Node}}, Of: about.ApplicationID}
		}
		return c, err
	}
	about, err := events.Data[events.Application](e)
	if e.Type() == events.ApplicationStopped {
		return cause{because: "stopping " + about.Name + " made room"}, err
	}
	return cause{from: about.ID, because: cmp.Or(about.Reason, "it waited for some time")}, err
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
