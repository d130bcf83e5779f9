package application

import "time"

// Settings are shared by the functions that take descriptors.
type Settings struct {
	LostAfter time.Duration `envconfig:"LOST_TELEMETRY_AFTER" default:"5m"` // where the descriptor does not say
}
