package generator

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Simulation is a world in time.
type Simulation struct {
	World *World
	At    time.Time

	step    time.Duration
	end     time.Time
	r       *rand.Rand
	links   [][]*Link
	paths   []float64
	cluster map[*Cluster]float64 // what the load of all of its nodes has in common, around 0
	nodes   []nodeState
	edges   []edgeState
	users   []user
	visits  []visit // of each node
}

// visit is how many users a node serves, and one of them.
type visit struct {
	users int
	one   user
}

type nodeState struct {
	noise    float64 // of its load, around 0
	memory   float64 // share
	cpu      float64
	down     int     // steps until it is back
	failures float64 // exponential moving average
	joules   float64
}

type edgeState struct {
	used     float64 // share of the bandwidth
	rtt      time.Duration
	jitter   time.Duration
	down     int
	failures float64
	energy   float64 // exponential moving average, watts
}

// user is somebody who moves.
type user struct {
	latitude, longitude float64
	near                int // the node that serves
	home                int
}

// Run begins a simulation of a time in steps.
func (w *World) Run(length, step time.Duration) *Simulation {
	s := &Simulation{
		World: w, At: w.Options.Start, step: step, end: w.Options.Start.Add(length), r: w.numbers("measurements"), links: w.neighbours(),
		paths: w.PathLengths(), cluster: map[*Cluster]float64{}, nodes: make([]nodeState, len(w.Nodes)), edges: make([]edgeState, len(w.Links)),
	}
	for i := range s.nodes {
		s.nodes[i].memory = 0.2 + 0.3*s.r.Float64()
	}
	users := w.numbers("users")
	for range w.Options.Users {
		n := users.IntN(len(w.Nodes))
		c := w.Nodes[n].Cluster
		s.users = append(s.users, user{c.Latitude + spread(users, 0.05), c.Longitude + spread(users, 0.05), n, n})
	}
	s.measure()
	return s
}

// Next goes one step on. It is false at the end.
func (s *Simulation) Next() bool {
	if s.At = s.At.Add(s.step); !s.At.Before(s.end) {
		return false
	}
	s.measure()
	return true
}

// day is the share of the daily peak at a time: low at four in the morning, high in the afternoon, lower at the weekend.
func day(at time.Time, lag float64) float64 {
	hour := float64(at.Hour()) + float64(at.Minute())/60 + float64(at.Second())/3600 + lag
	shape := math.Sin((hour-10)/24*2*math.Pi) + 0.3*math.Sin((hour-7)/12*2*math.Pi)
	if weekday := at.Weekday(); weekday == time.Saturday || weekday == time.Sunday {
		shape = 0.5*shape - 0.3
	}
	return shape
}

// remembers is how much of a deviation is left after a time, if half of it is gone after twenty minutes.
func (s *Simulation) remembers() float64 { return math.Pow(0.5, s.step.Minutes()/20) }

// chance is the probability that something happens in a step that happens so many times in a day.
func (s *Simulation) chance(perDay float64) float64 {
	return 1 - math.Exp(-perDay*s.step.Hours()/24)
}

// Failures of each in a day, and how long they last.
const (
	nodeFailures = 0.1
	linkFailures = 0.3
	lasts        = 10 * time.Minute
)

// average is the weight of the newest value in moving averages.
const average = 0.1

func (s *Simulation) measure() {
	kept := s.remembers()
	push := math.Sqrt(1 - kept*kept)
	for _, c := range s.World.Clusters {
		s.cluster[c] = kept*s.cluster[c] + push*0.08*s.r.NormFloat64()
	}
	for i, n := range s.World.Nodes {
		s.measureNode(&s.nodes[i], n, kept, push)
	}
	for i, l := range s.World.Links {
		s.measureLink(&s.edges[i], l)
	}
	s.visits = make([]visit, len(s.nodes))
	for i := range s.users {
		u := &s.users[i]
		s.move(u)
		s.visits[u.near] = visit{s.visits[u.near].users + 1, *u}
	}
}

// fails counts the steps of a failure down, or begins one.
func (s *Simulation) fails(down int, perDay float64) int {
	if down > 0 {
		return down - 1
	}
	if s.r.Float64() < s.chance(perDay) {
		return max(1, int(s.r.ExpFloat64()*float64(lasts)/float64(s.step)))
	}
	return 0
}

func (s *Simulation) measureNode(at *nodeState, n *Node, kept, push float64) {
	at.noise = kept*at.noise + push*0.05*s.r.NormFloat64()
	at.down = s.fails(at.down, nodeFailures)
	load := n.base + n.swing*day(s.At, n.lag)*0.5 + s.cluster[n.Cluster] + at.noise
	at.cpu = min(max(load, 0.01), 1)
	failed := 0.0
	if at.down > 0 {
		at.cpu, failed = 0, 1
	}
	wanted := 0.2 + 0.6*at.cpu
	at.memory = min(max(at.memory+(wanted-at.memory)*(1-kept)*0.3+0.003*s.r.NormFloat64(), 0.05), 0.98)
	at.failures += average * (failed - at.failures)
	at.joules += (n.Idle + (n.Peak-n.Idle)*at.cpu) * s.step.Seconds()
}

func (s *Simulation) measureLink(at *edgeState, l *Link) {
	at.down = s.fails(at.down, linkFailures)
	failed := 0.0
	if at.down > 0 {
		failed = 1
	}
	at.used = min(max(l.busy*(1+0.6*day(s.At, 0))+0.05*s.r.NormFloat64(), 0), 0.99)
	if at.down > 0 {
		at.used = 0
	}
	// What waits before a busy link.
	queue := 0.3 * at.used / (1 - at.used)
	at.rtt = 2*l.Latency + time.Duration(queue*(1+0.2*s.r.NormFloat64())*float64(time.Millisecond))
	at.jitter = time.Duration((0.05 + 0.3*queue) * float64(time.Millisecond))
	at.failures += average * (failed - at.failures)
	at.energy += average * (2 + 8*at.used + l.Distance/100 - at.energy)
}

// move lets a user walk, and now and then travel to another node or home.
func (s *Simulation) move(u *user) {
	u.latitude += 0.001 * s.r.NormFloat64()
	u.longitude += 0.001 * s.r.NormFloat64()
	if s.r.Float64() < s.chance(2) {
		u.near = u.home
		if s.r.IntN(2) == 0 {
			u.near = s.r.IntN(len(s.nodes))
		}
		c := s.World.Nodes[u.near].Cluster
		u.latitude, u.longitude = c.Latitude, c.Longitude
	}
}

// Present reports whether a node is there yet.
func (s *Simulation) Present(n *Node) bool {
	return !n.Late || s.At.Sub(s.World.Options.Start)*3 >= s.end.Sub(s.World.Options.Start)
}

// Load is the share of its cpu and of its memory that a node uses, and the watts that it draws.
func (s *Simulation) Load(n *Node) (cpu, memory, watts float64) {
	at := s.nodes[n.Index]
	return at.cpu, at.memory, n.Idle + (n.Peak-n.Idle)*at.cpu
}

// Used is the share of a link's bandwidth that is in use, and its round trip; down says that it has failed.
func (s *Simulation) Used(l *Link) (used float64, rtt time.Duration, down bool) {
	at := s.edges[l.Index]
	return at.used, at.rtt, at.down > 0
}

// columns are the metrics of CODECO's tables, in the order of data.csv.
var columns = []string{
	"cpu", "mem", "node_failure", "node_energy", "node_sec", "link_id", "link_failure", "node_net_failure", "ebw", "ibw", "latency",
	"uid_visits", "uid_location", "zone", "node_degree", "path_length", "link_energy", "node_net_energy", "freshness", "compliance", "portability",
}

// Row is what is measured of a node, by column.
type Row map[string]string

func number(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }

// Row measures a node: cpu and mem in percent of what it has, energy as a share of its peak, bandwidths that are left in bit/s,
// latency in milliseconds.
func (s *Simulation) Row(n *Node) Row {
	at := s.nodes[n.Index]
	var ids []string
	failure, free, latency, energy := 0.0, 0.0, 0.0, 0.0
	links := s.links[n.Index]
	for _, l := range links {
		e := s.edges[l.Index]
		ids = append(ids, l.Name())
		failure += e.failures
		free += l.Bandwidth * (1 - e.used)
		latency += float64(e.rtt) / float64(time.Millisecond)
		energy += e.energy
	}
	degree := float64(max(len(links), 1))
	visit := s.visits[n.Index]
	location := number(n.Cluster.Latitude, 4) + "," + number(n.Cluster.Longitude, 4)
	if visit.users > 0 {
		location = number(visit.one.latitude, 4) + "," + number(visit.one.longitude, 4)
	}
	watts := n.Idle + (n.Peak-n.Idle)*at.cpu
	return Row{
		"cpu": number(100*at.cpu, 2), "mem": number(100*at.memory, 2), "node_failure": number(at.failures, 4), "node_energy": number(watts/n.Peak, 4),
		"node_sec": level(n.Security), "link_id": strings.Join(ids, ","), "link_failure": number(failure/degree, 4),
		"node_net_failure": number(at.failures+failure, 4), "ebw": number(free, 0), "ibw": number(free, 0), "latency": number(latency/degree, 3),
		"uid_visits": strconv.Itoa(visit.users), "uid_location": location, "zone": n.Cluster.Name + "-" + n.Zone, "node_degree": strconv.Itoa(len(links)),
		"path_length": number(s.paths[n.Index], 3), "link_energy": number(energy/degree, 3), "node_net_energy": number(energy, 3),
		"freshness": number(s.step.Seconds(), 0), "compliance": level(n.Security), "portability": number(100*(1-at.memory), 1),
	}
}

// level is a score in words, as in the table of security levels.
func level(score float64) string {
	switch {
	case score >= 80:
		return "High"
	case score >= 50:
		return "Medium"
	}
	return "Low"
}
