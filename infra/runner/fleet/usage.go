package fleet

import (
	"hash/fnv"
	"math"
	"time"
)

// What a container really uses of what it asks for, and what it uses when it asks for nothing.
const (
	cpuShare         = 0.4
	memoryShare      = 0.6
	idleCores        = 0.05
	idleMemory       = 64 << 20
	counterReserve   = 0.999 // a node never quite reaches all of its cores
	breath           = 0.04  // how far the load swings to either side, as a share of it
	breathPeriod     = 97.0  // seconds of one swing
	restingDraw      = 0.7   // draw of an idle node, as a share of Node.Watts
	drawPerLoad      = 0.6   // what full load adds to it, so that half load draws Node.Watts
	firstDaysRunning = 24 * time.Hour
)

// settings are what is true of a node now: the plan with what was set since.
type settings struct {
	cores   int
	ram     int64
	cpu     float64 // others' share, 0..1
	memory  float64
	score   float64 // negative: none
	watts   float64
	fixed   bool // the draw was set, so it does not follow the load
	devices map[string]Device
	labels  map[string]string
}

func (f *Fleet) settings(c *Cluster, n *Node) settings {
	at := f.state.Nodes[c.Name+"/"+n.Name]
	s := settings{
		cores: n.Cores, ram: n.RAM, cpu: n.OthersCPU, memory: n.OthersMemory, score: n.Score, watts: n.Watts,
		devices: map[string]Device{}, labels: map[string]string{},
	}
	override(&s.cores, at.Cores)
	override(&s.ram, at.RAM)
	override(&s.cpu, at.CPU)
	override(&s.memory, at.Memory)
	override(&s.score, at.Score)
	override(&s.watts, at.Watts)
	s.fixed = at.Watts != nil
	for path, d := range n.Devices {
		s.devices[path] = d
	}
	for path, state := range at.Devices {
		s.devices[path] = Device{Name: s.devices[path].Name, State: state}
	}
	for key, value := range n.Labels {
		s.labels[key] = value
	}
	for key, value := range at.Labels {
		if value == nil {
			delete(s.labels, key)
		} else {
			s.labels[key] = *value
		}
	}
	return s
}

func override[T any](value *T, set *T) {
	if set != nil {
		*value = *set
	}
}

// load is what a node does between two changes of the fleet. It swings by a sine, so what its counters have gained
// after any time is a formula: they depend on the clock alone, not on how often anybody looked, and go on after a
// restart where they would be had there been none.
type load struct {
	cores   float64
	mean    float64 // used share of all cores, 0..1
	squeeze float64 // what everyone gets of the cpu time they want, 0..1
	swing   float64 // how far the load swings, as a share of itself
	phase   float64 // radians
	memory  float64 // used bytes
	base    float64 // watts at no load
	slope   float64 // watts that full load adds
}

// usage returns the load of a node with the pods on it.
func (s settings) usage(n *Node, pods []pod) load {
	l := load{cores: float64(s.cores), squeeze: 1, phase: phaseOf(n.HostID)}
	cores, memory := s.cpu*l.cores, s.memory*float64(s.ram)
	for _, p := range pods {
		for _, c := range p.containers {
			cores += c.cores()
			memory += c.memory()
		}
	}
	if most := l.cores * counterReserve; cores > most { // all get less, as the kernel shares a full cpu
		l.squeeze = most / cores
		cores = most
	}
	l.mean = cores / l.cores
	if l.mean > 0 {
		l.swing = max(0, min(breath, (counterReserve-l.mean)/l.mean))
	}
	l.memory = min(memory, float64(s.ram))
	l.base, l.slope = restingDraw*s.watts, drawPerLoad*s.watts
	if s.fixed {
		l.base, l.slope = s.watts, 0
	}
	return l
}

func (c Container) cores() float64 {
	if c.CPUMilli == 0 {
		return idleCores
	}
	return cpuShare * float64(c.CPUMilli) / 1000
}

func (c Container) memory() float64 {
	if c.MemoryBytes == 0 {
		return idleMemory
	}
	return memoryShare * float64(c.MemoryBytes)
}

// factor is what the load swings by at t, around 1.
func (l load) factor(t time.Time) float64 { return 1 + l.swing*math.Sin(l.angle(t)) }

// now returns the used share of all cores at t.
func (l load) now(t time.Time) float64 { return l.mean * l.factor(t) }

// busy returns how many seconds each cpu worked between from and to: the integral of now.
func (l load) busy(from, to time.Time) float64 {
	seconds := to.Sub(from).Seconds()
	if seconds <= 0 {
		return 0 // the clock was set back; counters wait for it
	}
	const omega = 2 * math.Pi / breathPeriod
	return l.mean * (seconds + l.swing/omega*(math.Cos(l.angle(from))-math.Cos(l.angle(to))))
}

func (l load) angle(t time.Time) float64 {
	return 2*math.Pi/breathPeriod*float64(t.UnixMilli())/1000 + l.phase
}

func phaseOf(id string) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	return float64(h.Sum32()) / math.MaxUint32 * 2 * math.Pi
}

// meter holds a node's counters as of Since.
type meter struct {
	Boot   time.Time `json:"boot"`
	Since  time.Time `json:"since"`
	Busy   float64   `json:"busy"`   // seconds that each cpu has worked since Boot
	Joules float64   `json:"joules"` // that the node has drawn
}

func newMeter(n *Node, now time.Time) meter {
	return meter{
		Boot: now.Add(-firstDaysRunning), Since: now,
		Busy: n.OthersCPU * firstDaysRunning.Seconds(), Joules: n.Joules,
	}
}

// at returns the meter as it stands at t under the load since it was last settled.
func (m meter) at(t time.Time, l load) meter {
	if !t.After(m.Since) {
		return m
	}
	busy := l.busy(m.Since, t)
	m.Joules += l.base*t.Sub(m.Since).Seconds() + l.slope*busy
	m.Busy += busy
	m.Since = t
	return m
}

// idle returns how many seconds each cpu has not worked since the node started.
func (m meter) idle() float64 { return max(0, m.Since.Sub(m.Boot).Seconds()-m.Busy) }

// taken returns how many cores the container uses at t.
func (l load) taken(c Container, t time.Time) float64 { return c.cores() * l.squeeze * l.factor(t) }
