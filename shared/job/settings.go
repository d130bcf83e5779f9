package job

import "time"

// Settings are what the functions that speak with agents have in common.
type Settings struct {
	Lease time.Duration `envconfig:"JOB_LEASE" default:"300s"` // how long an agent owns a job without a sign of life
}
