package history

// What history records of policies. Those of jobs are the moves of package job.
const (
	PolicyViolated   = "policy.violated"   // an episode began, or goes on after its end
	PolicyRemediated = "policy.remediated" // what it asks for was begun
	PolicyResolved   = "policy.resolved"   // no alert of it fires any more
	PolicySkipped    = "policy.skipped"    // nothing was done about a violation
	PolicyStayed     = "policy.stayed"     // a component had nowhere else to go
	PolicyHeld       = "policy.held"       // a remediation waits
	PolicyRefused    = "policy.refused"    // it cannot be watched
	PolicyUnclear    = "policy.unclear"    // an alert of it cannot be understood
)

// What history records of whole applications beside what was asked for.
const (
	ApplicationUnknown  = "application.unknown"  // a node with one of its components is silent
	ApplicationReturned = "application.returned" // all of them are heard of again
)
