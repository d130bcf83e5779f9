// Package l2sm has the words of L2S-M (l2sm.l2sm.k8s.local/v1), and reads what it says of the links of its overlays.
package l2sm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/netma/links"
)

// Group, Version and names of the objects.
const (
	Group   = "l2sm.l2sm.k8s.local"
	Version = "v1"
	Overlay = "Overlay"
	Plural  = "overlays"

	NetworkKind   = "L2Network"
	NetworkPlural = "l2networks"

	// Network is the name of the network that L2S-M describes (networkImplementation).
	Network = "L2SM"

	// LabelOurs marks the networks that were made here.
	LabelOurs = "littoral.dev/channel"
)

// Connectivity of a network, of L2S-M's controller and of its provider.
const (
	Available   = "Available"
	Unavailable = "Unavailable"
)

// names are those that L2S-M gives to figures. It says no units: they are taken for those of probes.
var names = map[string]string{"rtt": "net_rtt_ms", "jitter": "net_jitter_ms", "throughput": "net_throughput_kbps", "loss": "net_loss_percent"}

// down is the status of a link over which nothing comes.
const down = "Down"

// Measurements are those of the status of an overlay, each link once. A link that is down carries nothing.
func Measurements(status []byte, at time.Time) ([]links.Measurement, error) {
	var said struct {
		LinkMetrics []struct {
			SourceNode, TargetNode, Status string
			Metrics                        []struct{ Name, Value string }
		}
	}
	if err := json.Unmarshal(status, &said); err != nil {
		return nil, fmt.Errorf("read the status of an overlay: %w", err)
	}
	var all []links.Measurement
	for _, l := range said.LinkMetrics {
		if l.SourceNode == "" || l.TargetNode == "" || l.SourceNode == l.TargetNode {
			continue
		}
		m := links.Measurement{Source: l.SourceNode, Target: l.TargetNode, MeasuredAt: at}
		for _, metric := range l.Metrics {
			name := metric.Name
			if known := names[name]; known != "" {
				name = known
			}
			figure := m.Of(name)
			v, err := strconv.ParseFloat(strings.TrimSpace(metric.Value), 64)
			if figure != nil && err == nil {
				*figure = links.Known(v)
			}
		}
		if l.Status == down {
			m.Loss, m.Throughput, m.Bandwidth = links.Known(100), links.Known(0), links.Known(0)
		}
		all = append(all, m)
	}
	return Once(all), nil
}

// Once keeps of each link what was said of it last.
func Once(all []links.Measurement) []links.Measurement {
	number := map[[2]string]int{}
	var out []links.Measurement
	for i := range all {
		at := [2]string{all[i].Source, all[i].Target}
		if k, twice := number[at]; twice {
			if all[i].MeasuredAt.After(out[k].MeasuredAt) {
				out[k] = all[i]
			}
			continue
		}
		number[at] = len(out)
		out = append(out, all[i])
	}
	return slices.Clip(out)
}
