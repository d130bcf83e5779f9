package codecoapp

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/network"
)

// DefaultFrame is the size of a frame, in bytes, where only a bandwidth is given; SWM's scheduler assumes it.
const DefaultFrame = 500

// From these on, a limit was most likely written in another unit than the schema's.
const (
	littleBandwidth = 1_000 // bit/s
	longDelay       = time.Minute
	longInterval    = 10 * time.Millisecond
)

func (r *reader) serviceChannels(s service, list *yaml.Node, path string) {
	if list.Kind != yaml.SequenceNode {
		r.fault(path, list, "must be a list of channels")
		return
	}
	seen := map[string]bool{}
	for i, n := range list.Content {
		path := fmt.Sprintf("%s[%d]", path, i)
		if n.Kind != yaml.MappingNode {
			r.fault(path, n, "must be an object with channelName and otherService")
			continue
		}
		ch := appmodel.Channel{From: s.name, Name: fmt.Sprintf("%s-%d", s.name, i), Class: r.class(n, path)}
		if name, key := first(n, "channelName", "chanelName"); name != nil {
			ch.Name = name.Value
			if key == "chanelName" {
				r.warn(path+"."+key, name, "read as channelName")
			}
		}
		if seen[ch.Name] {
			r.fault(path+".channelName", n, "%q is the name of an earlier channel of this service", ch.Name)
		}
		seen[ch.Name] = true
		r.peer(&ch, n, path+".otherService")
		r.settings(&ch, child(n, "advancedChannelSettings"), path+".advancedChannelSettings")
		r.unknown(n, path, "channelName", "chanelName", "otherService", "serviceClass", "advancedChannelSettings")
		r.channels = append(r.channels, ch)
	}
}

func (r *reader) class(n *yaml.Node, path string) network.Class {
	v := child(n, "serviceClass")
	if v == nil || v.Value == "" {
		return network.BestEffort
	}
	switch class := network.Class(strings.ToUpper(v.Value)); class {
	case network.BestEffort, network.Assured:
		return class
	}
	r.fault(path+".serviceClass", v, "must be %s or %s", network.BestEffort, network.Assured)
	return network.BestEffort
}

// peer reads where a channel ends. A service of another application may not exist yet: the channel is then requested.
func (r *reader) peer(ch *appmodel.Channel, n *yaml.Node, path string) {
	other := child(n, "otherService")
	if other == nil || other.Kind != yaml.MappingNode {
		r.fault(path, n, "is missing: it says where the channel leads, by serviceName")
		return
	}
	ch.To.Component = text(other, "serviceName")
	if !serviceName.MatchString(ch.To.Component) {
		r.fault(path+".serviceName", other, "must name a service")
	}
	if app := text(other, "appName"); app != r.name {
		ch.To.Application = app
	}
	if port := child(other, "port"); port != nil {
		number, err := strconv.Atoi(port.Value)
		if err != nil || number < 0 || number > 65535 {
			r.fault(path+".port", port, "must be a port, 1 to 65535")
		}
		ch.To.Port = number
	}
}

func (r *reader) settings(ch *appmodel.Channel, n *yaml.Node, path string) {
	if n == nil {
		return
	}
	if v, key := first(n, "minBandwidth", "bandwidth"); v != nil {
		ch.Bandwidth = r.whole(v, path+"."+key, network.MaxBandwidth, "bit/s")
		if 0 < ch.Bandwidth && ch.Bandwidth < littleBandwidth {
			r.warn(path+"."+key, v, "is %d bit/s: without a suffix the unit is bit/s, and 5M are 5 Mbit/s", ch.Bandwidth)
		}
	}
	if v := child(n, "maxDelay"); v != nil {
		ch.MaxLatency = r.seconds(v, path+".maxDelay")
		if ch.MaxLatency > longDelay {
			r.warn(path+".maxDelay", v, "is %v: without a unit these are seconds, and 10e-3 are 10 ms", ch.MaxLatency)
		}
	}
	if v := child(n, "frameSize"); v != nil {
		ch.FrameSize = r.whole(v, path+".frameSize", 1<<31-1, "bytes")
	}
	if v := child(n, "sendInterval"); v != nil {
		ch.Interval = r.seconds(v, path+".sendInterval")
		if ch.Interval > longInterval {
			r.warn(path+".sendInterval", v, "is %v, taken for the greatest that is used, 10 ms: without a unit these are seconds", ch.Interval)
			ch.Interval = longInterval
		}
	}
	switch bits := ch.FrameSize * 8; {
	case ch.Bandwidth > 0 && ch.Interval == 0:
		if ch.FrameSize == 0 {
			ch.FrameSize = DefaultFrame
		}
		ch.Interval = time.Duration(float64(ch.FrameSize*8) / float64(ch.Bandwidth) * float64(time.Second))
	case ch.Bandwidth == 0 && bits > 0 && ch.Interval > 0:
		ch.Bandwidth = int64(float64(bits) / ch.Interval.Seconds())
	}
	r.unknown(n, path, "minBandwidth", "bandwidth", "maxDelay", "frameSize", "sendInterval")
}

// whole reads a quantity as a whole number of the unit, rounded up.
func (r *reader) whole(n *yaml.Node, path string, most int64, unit string) int64 {
	q, err := descriptor.Quantity(n.Value)
	if err != nil {
		r.fault(path, n, "%v", err)
		return 0
	}
	up := new(big.Int).Add(q.Num(), new(big.Int).Sub(q.Denom(), big.NewInt(1)))
	if up.Div(up, q.Denom()); !up.IsInt64() || up.Int64() > most {
		r.fault(path, n, "is more than %d %s", most, unit)
		return 0
	}
	return up.Int64()
}

// seconds reads a quantity of seconds, or a duration with its unit, which the newest examples have.
func (r *reader) seconds(n *yaml.Node, path string) time.Duration {
	if d, err := time.ParseDuration(n.Value); err == nil && !strings.HasSuffix(n.Value, "m") && d >= 0 { // 1m are thousandths of a second
		return d
	}
	q, err := descriptor.Quantity(n.Value)
	if err != nil {
		r.fault(path, n, "%v", err)
		return 0
	}
	nanos := new(big.Rat).Mul(q, new(big.Rat).SetInt64(int64(time.Second)))
	f, _ := nanos.Float64()
	if f > float64(366*24*time.Hour) {
		r.fault(path, n, "is more than a year; the unit is seconds")
		return 0
	}
	return time.Duration(f)
}
