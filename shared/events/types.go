// Package events defines the events of Littoral: their types, their data, and the CloudEvents envelope.
//
// A type says what happened, never what to do: who reacts is written in triggers/. An event is stored in the outbox by
// the transaction that made it true (package store) and published from there; nothing else talks to the Broker.
package events

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Event types. The subject is the id of the application, job or snapshot that the event is about; for events that
// resume the PingSources it is Clocks.
const (
	ApplicationSubmitted = "dev.littoral.application.submitted.v1" // stored, waits for a place
	ApplicationFirst     = "dev.littoral.application.first.v1"     // submitted while there was no other
	ApplicationUpdated   = "dev.littoral.application.updated.v1"   // content changed
	ApplicationStarted   = "dev.littoral.application.started.v1"   // asked to run again
	ApplicationStopped   = "dev.littoral.application.stopped.v1"   // asked to stop
	ApplicationDeleted   = "dev.littoral.application.deleted.v1"   // gone for its user
	ApplicationDisplaced = "dev.littoral.application.displaced.v1" // components lost or left their place
	ApplicationPlaced    = "dev.littoral.application.placed.v1"    // a placement decision was written
	ApplicationUnplaced  = "dev.littoral.application.unplaced.v1"  // some component fits nowhere now
	ApplicationWaiting   = "dev.littoral.application.waiting.v1"   // this application, or a later one, waits for a place or for a better one
	JobReady             = "dev.littoral.job.ready.v1"             // an orchestrator may execute it
	JobFinished          = "dev.littoral.job.finished.v1"
	JobDegraded          = "dev.littoral.job.degraded.v1"
	ResourceChanged      = "dev.littoral.resource.changed.v1" // conditions reported by an orchestrator
	NodeDrained          = "dev.littoral.node.drained.v1"     // by an operator: what runs there has to leave
	TopologyChanged      = "dev.littoral.topology.changed.v1"
	PodsChanged          = "dev.littoral.pods.changed.v1"          // applications have other pods on some nodes
	TopologyPublished    = "dev.littoral.topology.published.v1"    // a component was told where it runs
	ValuePublished       = "dev.littoral.value.published.v1"       // somebody changed a key of the bus
	AlertReceived        = "dev.littoral.alert.received.v1"        // about a policy, new to us
	PolicyFirst          = "dev.littoral.policy.first.v1"          // created while there was no other, and no application
	ClockWanted          = "dev.littoral.clock.wanted.v1"          // created: something that a PingSource looks after, which may rest
	PolicyChanged        = "dev.littoral.policy.changed.v1"        // the rule store has to follow
	PolicyViolated       = "dev.littoral.policy.violated.v1"       // an episode began, or goes on after its end
	PolicyResolved       = "dev.littoral.policy.resolved.v1"       // nothing violates it any more
	RemediationRequested = "dev.littoral.remediation.requested.v1" // by a violated policy, of its application; again when one that was held back is due
	WebhookRequested     = "dev.littoral.webhook.requested.v1"     // by a violated policy, of an address that it names
	TrainingRequested    = "dev.littoral.training.requested.v1"    // of a model that forecasts
	NetworkDegraded      = "dev.littoral.network.degraded.v1"      // a measured link no longer keeps its channels
	NetworkRestored      = "dev.littoral.network.restored.v1"      // it does again
	LocationNoticed      = "dev.littoral.location.noticed.v1"      // somebody who subscribed is to be told where users are
	HandoverRequested    = "dev.littoral.handover.requested.v1"    // of an application, to another controller; again when it has not got on
	HandoverReleased     = "dev.littoral.handover.released.v1"     // by another controller, of an application that this one has accepted

	// Tick is what a PingSource sends.
	Tick = "dev.knative.sources.ping"

	// What an ApiServerSource sends, with the whole object as data.
	ObjectAdded   = "dev.knative.apiserver.resource.add"
	ObjectUpdated = "dev.knative.apiserver.resource.update"
	ObjectDeleted = "dev.knative.apiserver.resource.delete"

	// Any stands for every type in what a dead letter sink consumes.
	Any = "*"
)

// Clocks is the subject of events that resume the PingSources. Events about one subject wait for each other, and these
// must not wait for others about an application: the functions that look after it at each tick would not run until
// then.
const Clocks = "clocks"

// Nudge reports whether events of the type come unsigned from the platform. They only tell a function when to look; it
// believes nothing that they say.
func Nudge(typ string) bool {
	return typ == Tick || typ == ObjectAdded || typ == ObjectUpdated || typ == ObjectDeleted
}

// Application is the data of every application event.
type Application struct {
	ID         uuid.UUID `json:"id"`
	Name       string    `json:"name"`
	Version    int64     `json:"version"`
	Components []string  `json:"components,omitempty"` // those concerned; empty = all
	Reason     string    `json:"reason,omitempty"`
	Watched    bool      `json:"watched,omitempty"` // policies are about it, or will be
	Dialect    string    `json:"dialect,omitempty"` // the language that it is written in
}

// Attributes are the extensions that triggers filter on.
func (a Application) Attributes() map[string]string {
	attributes := map[string]string{}
	if a.Dialect != "" {
		attributes["dialect"] = a.Dialect
	}
	if a.Watched {
		attributes["watched"] = "true"
	}
	return attributes
}

// Job is the data of every job and resource event.
type Job struct {
	ID            uuid.UUID `json:"id"`
	ApplicationID uuid.UUID `json:"applicationId"`
	Component     string    `json:"component"`
	Type          string    `json:"type"`
	State         string    `json:"state"`
	Orchestrator  string    `json:"orchestrator"`
	Cluster       string    `json:"cluster"`
	Node          string    `json:"node"`
	Epoch         int64     `json:"epoch"`
}

// Attributes are the extensions that triggers filter on.
func (j Job) Attributes() map[string]string {
	return map[string]string{"orchestrator": j.Orchestrator, "jobtype": j.Type}
}

// Handover is the data of HandoverRequested and HandoverReleased.
type Handover struct {
	ID    uuid.UUID `json:"id"` // of the application
	Epoch int64     `json:"epoch"`
}

// Clock is the data of ClockWanted.
type Clock struct {
	Need string `json:"need"` // the PingSource's label littoral.dev/ticks-while
}

// Node is the data of NodeDrained.
type Node struct {
	Cluster string `json:"cluster"`
	Node    string `json:"node"`
}

// Network is the data of NetworkDegraded and NetworkRestored.
type Network struct {
	Source   string    `json:"source"`
	Target   string    `json:"target"`
	Reason   string    `json:"reason,omitempty"`
	Channels []Channel `json:"channels"`
}

// Channel names one of an application; one that was reserved has no application.
type Channel struct {
	Application uuid.UUID `json:"application"`
	Name        string    `json:"name"`
}

// Location is the data of LocationNoticed.
type Location struct {
	Subscription uuid.UUID       `json:"subscription"`
	Notification json.RawMessage `json:"notification"`
}

// Topology is the data of TopologyChanged.
type Topology struct {
	Snapshot uuid.UUID        `json:"snapshot"`
	Changes  []TopologyChange `json:"changes"`
}

// TopologyChange is one difference between two snapshots.
type TopologyChange struct {
	Cluster string `json:"cluster"` // empty: it is about all of it
	Node    string `json:"node,omitempty"`
	Change  string `json:"change"` // as package topology names them
	Detail  string `json:"detail,omitempty"`
}

// Place names for people what has changed.
func (c TopologyChange) Place() string {
	if c.Cluster == "" {
		return "all of it"
	}
	return strings.TrimSuffix(c.Cluster+"/"+c.Node, "/")
}

// Published is what a component was told, as it stands on the bus under the key.
type Published struct {
	Key        string          `json:"key"`
	Instance   string          `json:"instance"`
	Component  string          `json:"component"`
	Generation int64           `json:"generation"`
	Value      json.RawMessage `json:"value"`
}

// Key is the data of ValuePublished.
type Key struct {
	Key string `json:"key"`
}

// Alert is the data of AlertReceived: one alert of a webhook.
type Alert struct {
	Policy      uuid.UUID         `json:"policy"`
	Fingerprint string            `json:"fingerprint"`     // of the labels: which of the things the policy watches
	Firing      bool              `json:"firing"`          // else resolved
	StartsAt    time.Time         `json:"startsAt"`        // names the episode
	EndsAt      time.Time         `json:"endsAt,omitzero"` // of one that is resolved: whatever started before has ended
	ReceivedAt  time.Time         `json:"receivedAt"`
	Since       time.Time         `json:"since,omitzero"` // when the policy had been activated, as it came in
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// Policy is the data of every policy event.
type Policy struct {
	ID        uuid.UUID  `json:"id"`
	Name      string     `json:"name"`
	Instance  string     `json:"instance,omitempty"`  // of the application that it is about
	Component string     `json:"component,omitempty"` // of the violation's subject
	Violation *uuid.UUID `json:"violation,omitempty"` // of PolicyViolated, RemediationRequested and WebhookRequested
}

// Training is the data of the event about one.
type Training struct {
	ID uuid.UUID `json:"id"`
}
