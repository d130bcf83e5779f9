// Package recorded has the names of what history records. Who reads history decides by these.
package recorded

// Of policies.
const (
	PolicyViolated   = "policy.violated"   // an episode began, or goes on after its end
	PolicyRemediated = "policy.remediated" // what it asks for was begun
	PolicyResolved   = "policy.resolved"   // no alert of it fires any more
	PolicySkipped    = "policy.skipped"    // nothing was done about a violation
	PolicyStayed     = "policy.stayed"     // a component had nowhere else to go
	PolicyHeld       = "policy.held"       // a remediation waits
	PolicySuggested  = "policy.suggested"  // a remediation waits for a person
	PolicyConfirmed  = "policy.confirmed"  // a person wants it done
	PolicyRefused    = "policy.refused"    // it cannot be watched
	PolicyUnclear    = "policy.unclear"    // an alert of it cannot be understood
)

// Of whole applications.
const (
	ApplicationSubmitted = "application.submitted"
	ApplicationUpdated   = "application.updated"
	ApplicationStarted   = "application.started"
	ApplicationStopped   = "application.stopped"
	ApplicationDeleted   = "application.deleted"
	ApplicationDisplaced = "application.displaced" // components lost or left their place
	ApplicationPlaced    = "application.placed"    // a placement decision was written
	ApplicationUnplaced  = "application.unplaced"  // some component fits nowhere now
	ApplicationUnknown   = "application.unknown"   // a node with one of its components is silent
	ApplicationReturned  = "application.returned"  // all of them are heard of again
)

// Of jobs, those that somebody decides by; all are the moves of package job.
const (
	JobSubmitted   = "job.submitted"
	JobCleanup     = "job.cleanup"
	JobWaiting     = "job.waiting"
	JobPlaced      = "job.placed"
	JobPromoted    = "job.promoted"
	JobTakenOver   = "job.takenover"
	JobAdopted     = "job.adopted"
	JobProgressing = "job.progressing"
	JobFinished    = "job.finished"
	JobStopped     = "job.stopped"
)

// Of the infrastructure, and of events themselves.
const (
	TopologyChanged = "topology.changed"

	NetworkUnreachable = "network.unreachable" // what is to carry channels does not do so
	NetworkReachable   = "network.reachable"   // it does again

	EventDead     = "event.dead"     // a function gave it up
	EventForged   = "event.forged"   // it is not ours
	EventReplayed = "event.replayed" // a person sent it again
)
