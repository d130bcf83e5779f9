package job

import "time"

// Settings are what the functions that speak with agents have in common.
type Settings struct {
	Lease time.Duration `envconfig:"JOB_LEASE" default:"300s"` // how long an agent owns a job without a sign of life

	// Whether a token that is bound to no agent may act as one that telemetry does not know, as agents of older ICOS do, or that
	// has polled with a token of its own. It may then take the jobs of any cluster.
	UnknownAgents bool `envconfig:"UNKNOWN_AGENTS" default:"false"`
}
