package appmodel

import (
	"time"

	"github.com/littoral-project/littoral/shared/network"
)

// Channel is traffic from one component to another; traffic both ways is two channels. A descriptor of ICOS has none: it
// only says who talks to whom, see Communication.
type Channel struct {
	Name       string        `json:"name"`
	From       string        `json:"from"` // the component
	To         Peer          `json:"to"`
	Class      network.Class `json:"class,omitempty"`      // the least that its network must give
	Bandwidth  int64         `json:"bandwidth,omitempty"`  // bit/s, 0: none in particular
	MaxLatency time.Duration `json:"maxLatency,omitempty"` // 0: any
	FrameSize  int64         `json:"frameSize,omitempty"`  // bytes
	Interval   time.Duration `json:"interval,omitempty"`   // between two frames
}

// Peer is where a channel ends.
type Peer struct {
	Application string `json:"application,omitempty"` // empty: the same
	Component   string `json:"component"`
	Port        int    `json:"port,omitempty"`
}

// Has reports whether both ends of a channel of the application are its own.
func (a *Application) Has(ch *Channel) bool {
	return ch.To.Application == "" || ch.To.Application == a.Name
}

// Spread keeps the replicas of components apart: at most Max of them, or the share MaxShare (0 to 1), in one domain.
// Exactly one of the two is set.
type Spread struct {
	Components []string `json:"components"`
	By         string   `json:"by"` // node, cluster, orchestrator, or a node label whose values are the domains
	Max        int      `json:"max,omitempty"`
	MaxShare   float64  `json:"maxShare,omitempty"`
}
