package application

import "github.com/littoral-project/littoral/shared/job"

// Health is how the components of an application that is meant to run fare, whatever its status waits for: that of the
// component that fares worst. It is "" of an application that is not meant to run.
type Health string

// The healths, the worst last.
const (
	Healthy     Health = "Healthy"     // all components run
	Progressing Health = "Progressing" // some component waits for a place, or is being deployed
	Silent      Health = "Unknown"     // some component is at a place that does not answer
	Unhealthy   Health = "Degraded"    // some component failed or runs badly
)

// Healths lists them, the worst last.
var Healths = []string{string(Healthy), string(Progressing), string(Silent), string(Unhealthy)}

// Health returns the health of the application.
func (a *Application) Health() Health {
	if a.Desired != Running {
		return ""
	}
	worst := 0
	for _, j := range a.Jobs {
		if j.Live() {
			worst = max(worst, severity(j))
		}
	}
	return Health(Healths[worst])
}

// severity is the place in Healths of a component.
func severity(j *job.Job) int {
	switch {
	case j.Available():
		return 0
	case j.Unknown() != "":
		return 2
	case j.State == job.Degraded:
		return 3
	}
	return 1
}
