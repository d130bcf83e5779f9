package fleet

import (
	"hash/fnv"
	"math"
	"time"
)

// How much of its requests a container really uses, and how much it uses without requests.
const (
	cpuShare         = 0.4
	memoryShare      = 0.6
	idleCores        = 0.05
	idleMemory       = 64 << 20
	counterReserve   = 0.999 // a node never uses all of its cores completely
	breath           = 0.04  // how far the load swings to either side, as a share of it
	breathPeriod     = 97.0  // of one swing, in seconds
	restingDraw      = 0.7   // of an idle node, as a share of Node.Watts
	drawPerLoad      = 0.6   // added by full load, so that half load draws Node.Watts
	firstDaysRunning = 24 * time.Hour
)

// settings are the properties of a node now: the plan and what was set since.
type settings struct {
	cores   int
	ram     int64
	cpu     float64 // others' share, 0..1
	memory  float64
	score   float64 // negative: none
	watts   float64
	fixed   bool // the draw was set, so it does not depend on the load
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

// load is the load of a node between two changes of the fleet. It follows a sine, so the growth of its counters has a
// closed formula. They depend only on the clock, not on how often they are read, and after a restart they have the
// values that they would have had without it.
type load struct {
	cores   float64
	mean    float64 // used share of all cores, 0..1
	squeeze float64 // the share of the requested cpu time that each container gets, 0..1
	swing   float64 // amplitude of the swing, as a share of the load
	phase   float64 // in radians
	memory  float64 // used, in bytes
	base    float64 // in watts, without load
	slope   float64 // watts added by full load
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
	if most := l.cores * counterReserve; cores > most { // all get less: the kernel shares a full cpu in the same way
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

// factor is the factor of the swing at t, around 1.
func (l load) factor(t time.Time) float64 { return 1 + l.swing*math.Sin(l.angle(t)) }

// now returns the used share of all cores at t.
func (l load) now(t time.Time) float64 { return l.mean * l.factor(t) }

// busy returns how many seconds each cpu worked between from and to: the integral of now.
func (l load) busy(from, to time.Time) float64 {
	seconds := to.Sub(from).Seconds()
	if seconds <= 0 {
		return 0 // the clock was set back; counters wait until it has caught up
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

// meter holds a node's counters at the time Since.
type meter struct {
	Boot   time.Time `json:"boot"`
	Since  time.Time `json:"since"`
	Busy   float64   `json:"busy"`   // seconds that each cpu has worked since Boot
	Joules float64   `json:"joules"` // drawn by the node
}

func newMeter(n *Node, now time.Time) meter {
	return meter{
		Boot: now.Add(-firstDaysRunning), Since: now,
		Busy: n.OthersCPU * firstDaysRunning.Seconds(), Joules: n.Joules,
	}
}

// at returns the meter at time t, with the load that applied since it was last updated.
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

// idle returns for how many seconds each cpu has been idle since the node started.
func (m meter) idle() float64 { return max(0, m.Since.Sub(m.Boot).Seconds()-m.Busy) }

// coresAt returns how many cores the container uses at t.
func (l load) coresAt(c Container, t time.Time) float64 { return c.cores() * l.squeeze * l.factor(t) }
