// Package plan tells in the words of SWM, CODECO's scheduler, what becomes of an application: its AssignmentPlan with the actions that
// are done and to be done, and the state of each channel. All of it is read from what is stored already; nothing is kept twice.
package plan

import (
	"cmp"
	"slices"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/swm/channels"
	"github.com/littoral-project/littoral/shared/swm/qos"
)

// State is the state of a channel.
type State string

// The states, in the order in which a channel has them, and those in which it does not work.
const (
	Requested    State = "REQUESTED"    // an end has no place yet, or the network is unknown
	Reviewed     State = "REVIEWED"     // it has a way
	Implementing State = "IMPLEMENTING" // an end is being deployed
	Implemented  State = "IMPLEMENTED"  // one end is deployed
	Ack          State = "ACK"          // both are deployed, and not yet both run
	Running      State = "RUNNING"
	Rejected     State = "REJECTED" // an end has no place, since no way keeps what the channel asks for
	OutOfQoS     State = "OOQOS"    // it runs and does not get what it was promised
	Canceled     State = "CANCELED" // its application was stopped or deleted
)

// Channel is a channel with its state.
type Channel struct {
	channels.Channel
	Status State  `json:"status"`
	Reason string `json:"reason,omitempty"`

	Port     int      `json:"targetPort,omitempty"`
	Frame    int64    `json:"framesize,omitempty"` // bytes
	Interval int64    `json:"sendInterval,omitempty"`
	Ends     Ends     `json:"cniMetadata,omitzero"`
	from, to *job.Job // nil without one
}

// Channels are those of an application, those that were not placed yet after the others. ways are the stored ones.
func Channels(a *application.Application, app *appmodel.Application, ways []channels.Channel, broken qos.Broken) []Channel {
	live := map[string]*job.Job{}
	parts := map[string][]string{} // of components
	for _, j := range a.Jobs {
		if j.Live() {
			name := job.ReplicaName(j.Component, j.Replica)
			live[name] = j
			parts[j.Component] = append(parts[j.Component], name)
		}
	}
	var out []Channel
	for i := range app.Channels {
		ch := &app.Channels[i]
		one := Channel{Port: ch.To.Port, Frame: ch.FrameSize, Interval: int64(ch.Interval)}
		found := false
		for _, way := range ways {
			if way.Name != ch.Name || !slices.Contains(parts[ch.From], way.Source) && way.Source != ch.From {
				continue
			}
			found = true
			one.Channel, one.from, one.to = way, live[way.Source], live[way.Target]
			one.Status, one.Reason = one.state(a, broken)
			out = append(out, one)
		}
		if found {
			continue
		}
		one.Channel = channels.Channel{
			Application: a.ID, Name: ch.Name, Source: ch.From, Target: ch.To.Component, Class: ch.Class, Bandwidth: ch.Bandwidth,
			MaxLatency: ch.MaxLatency,
		}
		one.Status, one.Reason = Requested, "no network is described for it"
		switch {
		case a.Desired != application.Running:
			one.Status, one.Reason = Canceled, "its application is not meant to run"
		case !app.Has(ch):
			one.Reason = "it leads to another application, " + ch.To.Application
		}
		out = append(out, one)
	}
	slices.SortStableFunc(out, func(a, b Channel) int { return cmp.Compare(a.Position, b.Position) })
	return out
}

// works reports whether it carries something, be it less well than promised.
func (c *Channel) works() bool { return c.Status == Running || c.Status == OutOfQoS }

// state follows from what is stored of both ends and of the network.
func (c *Channel) state(a *application.Application, broken qos.Broken) (State, string) {
	from, to := c.from, c.to
	why := broken[events.Channel{Application: c.Application, Name: c.Name}]
	switch {
	case a.Desired != application.Running:
		return Canceled, "its application is not meant to run"
	case from == nil || to == nil:
		return Canceled, "an end of it is gone"
	case c.Refused:
		return Rejected, "no way keeps what it asks for"
	case !from.Placed() || !to.Placed():
		return Requested, "an end of it waits for a place"
	case c.Network == "" && !c.Loopback:
		return Requested, "no network leads from one end to the other"
	case why != "":
		return OutOfQoS, why
	case from.Available() && to.Available():
		return Running, ""
	case from.State == job.Finished && to.State == job.Finished:
		return Ack, "its ends are deployed, and do not both run yet"
	case from.State == job.Finished || to.State == job.Finished:
		return Implemented, "one of its ends is deployed"
	case from.OwnerID != "" || to.OwnerID != "":
		return Implementing, "its ends are being deployed"
	}
	return Reviewed, ""
}
