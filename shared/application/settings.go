package application

import "time"

// Settings are what the functions that take descriptors have in common.
type Settings struct {
	LostAfter time.Duration `envconfig:"LOST_TELEMETRY_AFTER" default:"5m"` // where the descriptor does not say
}
