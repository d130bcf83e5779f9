package topology

import (
	"fmt"
	"math"
	"time"
)

// Hearing is how well a node is heard: what of its telemetry of the last ten minutes is missing or came otherwise than it was sent.
type Hearing struct {
	LostSamples       Measure `json:"lostSamples,omitzero"`       // sent, and not stored
	LateSeconds       Measure `json:"lateSeconds,omitzero"`       // it was silent for so long, and what it said meanwhile came afterwards
	DisorderedSamples Measure `json:"disorderedSamples,omitzero"` // with a time before that of what was sent earlier
	ClockSkewSeconds  Measure `json:"clockSkewSeconds,omitzero"`  // how far its clock is ahead of the receiver's
}

// IsZero reports whether nothing is known.
func (h Hearing) IsZero() bool { return h == Hearing{} }

// skewed is from when a clock is wrong: it is measured to a second.
const skewed = 2.0

// Doubts say in sentences what is wrong with what is heard.
func (h Hearing) Doubts() []string {
	var all []string
	if n := h.LostSamples.Or(0); n > 0 {
		all = append(all, fmt.Sprintf("%.0f of its samples of the last ten minutes were lost", n))
	}
	if s := h.LateSeconds.Or(0); s > 0 {
		all = append(all, fmt.Sprintf("its telemetry came up to %s late", seconds(s)))
	}
	if n := h.DisorderedSamples.Or(0); n > 0 {
		all = append(all, fmt.Sprintf("its clock went back, or samples came out of order, %.0f times in the last ten minutes", n))
	}
	switch s := h.ClockSkewSeconds.Or(0); {
	case s >= skewed:
		all = append(all, fmt.Sprintf("its clock is %s ahead", seconds(s)))
	case s <= -skewed:
		all = append(all, fmt.Sprintf("its clock is %s behind", seconds(-s)))
	}
	return all
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s)) * time.Second }
