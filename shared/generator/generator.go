// Package generator makes clusters, nodes, links, applications and users that do not exist, with what would be measured of
// them: for tests, for training where there is no real data, and for a laptop that wants to be a continuum.
//
// A world is made from its options alone: the same seed makes the same world and the same measurements. Loads have the shape of
// a day, those of a cluster go up and down together, nodes and links fail for a while, and users move.
package generator

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Options of a world.
type Options struct {
	Seed         uint64
	Nodes        int
	Clusters     int // 0 = one for about twenty nodes
	Applications int
	Users        int
	Start        time.Time
}

// Bounds of a world.
const (
	MaxNodes        = 20_000
	MaxClusters     = 1000
	MaxApplications = 10_000
	MaxUsers        = 100_000
)

// Default is the world that is made when nothing is said.
func Default() Options {
	return Options{Seed: 1, Nodes: 50, Applications: 10, Users: 100, Start: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)} // a Monday
}

// Parse reads options such as "nodes=500,seed=7"; what is not named has its default.
func Parse(text string) (Options, error) {
	o := Default()
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		n, err := strconv.ParseUint(value, 10, 63)
		if err != nil {
			return o, fmt.Errorf("generated fleet: %q is not of the form name=number", part)
		}
		switch name {
		case "seed":
			o.Seed = n
		case "nodes":
			o.Nodes = clamp(n)
		case "clusters":
			o.Clusters = clamp(n)
		case "applications":
			o.Applications = clamp(n)
		case "users":
			o.Users = clamp(n)
		default:
			return o, fmt.Errorf("generated fleet: %q is not known; known are seed, nodes, clusters, applications and users", name)
		}
	}
	return o, o.check()
}

// clamp keeps a number within what check can refuse.
func clamp(n uint64) int { return int(min(n, math.MaxInt32)) }

func (o *Options) check() error {
	switch {
	case o.Nodes < 1 || o.Nodes > MaxNodes:
		return fmt.Errorf("a world has 1 to %d nodes, not %d", MaxNodes, o.Nodes)
	case o.Clusters < 0 || o.Clusters > MaxClusters || o.Clusters > o.Nodes:
		return fmt.Errorf("a world has 1 to %d clusters, each with a node, not %d", MaxClusters, o.Clusters)
	case o.Applications < 0 || o.Applications > MaxApplications:
		return fmt.Errorf("a world has at most %d applications, not %d", MaxApplications, o.Applications)
	case o.Users < 0 || o.Users > MaxUsers:
		return fmt.Errorf("a world has at most %d users, not %d", MaxUsers, o.Users)
	}
	return nil
}

// World is what there is.
type World struct {
	Options      Options
	Clusters     []*Cluster
	Nodes        []*Node // of all clusters, in their order
	Links        []*Link // each once; they lead either way
	Applications []*Application
}

// Cluster is a site.
type Cluster struct {
	Name      string
	City      City
	Type      string // ocm, or nuvla for hosts with Docker
	Nodes     []*Node
	Latitude  float64
	Longitude float64
}

// City is a place on the map.
type City struct {
	Name, Country       string
	Latitude, Longitude float64
}

// cities are where clusters stand; a second cluster of one stands beside it.
var cities = []City{
	{"Frankfurt", "Germany", 50.11, 8.68},
	{"Paris", "France", 48.86, 2.35},
	{"Madrid", "Spain", 40.42, -3.70},
	{"Athens", "Greece", 37.98, 23.73},
	{"Ljubljana", "Slovenia", 46.06, 14.51},
	{"Oslo", "Norway", 59.91, 10.75},
	{"Milan", "Italy", 45.46, 9.19},
	{"Warsaw", "Poland", 52.23, 21.01},
	{"Lisbon", "Portugal", 38.72, -9.14},
	{"Vienna", "Austria", 48.21, 16.37},
	{"Dublin", "Ireland", 53.35, -6.26},
	{"Tallinn", "Estonia", 59.44, 24.75},
}

// Node is a machine.
type Node struct {
	Index    int
	Name     string
	Cluster  *Cluster
	Kind     Kind
	Cores    int
	Memory   int64 // bytes
	Idle     float64
	Peak     float64 // watts
	Security float64 // score, 0..100
	Zone     string
	Late     bool    // it appears after a third of the time
	base     float64 // share of its cpu that is used on average
	swing    float64 // how much the day changes that
	lag      float64 // hours that its day is shifted by
}

// Kind is what sort of machine a node is.
type Kind struct {
	Name, Arch string
	cores      []int
	memory     int64   // bytes for each core
	idle, peak float64 // watts for each core
	mhz        float64
	speed      float64 // of its network, bit/s
}

// kinds from the core of the continuum to its edge.
var kinds = []Kind{
	{"cloud", "x86_64", []int{16, 32, 64}, 4 << 30, 3, 10, 3400, 10e9},
	{"edge", "x86_64", []int{4, 8, 16}, 4 << 30, 3, 9, 2800, 1e9},
	{"device", "aarch64", []int{2, 4}, 1 << 30, 0.7, 2, 1800, 1e8},
}

// Link joins two nodes.
type Link struct {
	Index     int
	A, B      *Node
	Distance  float64       // km
	Latency   time.Duration // one way
	Bandwidth float64       // bit/s
	busy      float64       // share that is used on average
}

// Name of a link, from one of its ends.
func (l *Link) Name() string { return l.A.Name + "-" + l.B.Name }

// Application is one that could be handed in.
type Application struct {
	Name     string
	Profile  string
	QoS      string
	Services []Service
	Channels []Channel
}

// Service is a component.
type Service struct {
	Name   string
	CPU    int   // milli-cores
	Memory int64 // MiB
	Port   int
}

// Channel leads from a service to another one.
type Channel struct {
	Name      string
	From, To  int
	Bandwidth int // Mbit/s
	Delay     time.Duration
}

// New makes a world. Each part has random numbers of its own, so that more applications change no node.
func New(o Options) (*World, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Clusters == 0 {
		o.Clusters = min(max(1, o.Nodes/20), MaxClusters)
	}
	if o.Start.IsZero() {
		o.Start = Default().Start
	}
	w := &World{Options: o}
	w.makeNodes(w.numbers("nodes"))
	w.makeLinks(w.numbers("links"))
	w.makeApplications(w.numbers("applications"))
	return w, nil
}

// numbers are the random numbers for a purpose.
func (w *World) numbers(purpose string) *rand.Rand {
	sum := uint64(14695981039346656037) // FNV-1a
	for _, c := range []byte(purpose) {
		sum = (sum ^ uint64(c)) * 1099511628211
	}
	return rand.New(rand.NewPCG(w.Options.Seed, sum))
}

func (w *World) makeNodes(r *rand.Rand) {
	for i := range w.Options.Clusters {
		city := cities[i%len(cities)]
		name := strings.ToLower(city.Name)
		if i >= len(cities) {
			name += "-" + strconv.Itoa(i/len(cities)+1)
		}
		c := &Cluster{Name: name, City: city, Type: "ocm", Latitude: city.Latitude + spread(r, 0.2), Longitude: city.Longitude + spread(r, 0.2)}
		if i%5 == 4 {
			c.Type = "nuvla"
		}
		w.Clusters = append(w.Clusters, c)
	}
	for i := range w.Options.Nodes {
		c := w.Clusters[i%len(w.Clusters)]
		kind := kinds[1+r.IntN(2)]
		if i%len(w.Clusters)%6 == 0 { // each sixth cluster is a data centre
			kind = kinds[0]
		}
		n := &Node{Cluster: c, Kind: kind, Cores: kind.cores[r.IntN(len(kind.cores))], Name: c.Name + "-" + strconv.Itoa(len(c.Nodes)+1)}
		n.Memory = int64(n.Cores) * kind.memory
		n.Idle, n.Peak = kind.idle*float64(n.Cores), kind.peak*float64(n.Cores)
		n.Security = math.Round(55 + 40*r.Float64())
		n.Zone = string(rune('a' + r.IntN(3)))
		n.Late = r.IntN(20) == 0
		n.base, n.swing, n.lag = 0.15+0.35*r.Float64(), 0.1+0.3*r.Float64(), spread(r, 2)
		c.Nodes = append(c.Nodes, n)
	}
	for _, c := range w.Clusters {
		for _, n := range c.Nodes {
			n.Index = len(w.Nodes)
			w.Nodes = append(w.Nodes, n)
		}
	}
}

// spread is a number within most of zero.
func spread(r *rand.Rand, most float64) float64 { return most * (2*r.Float64() - 1) }

// makeLinks joins the nodes of each cluster in a ring with some chords, and the first nodes of the clusters in another one: every
// node reaches every other, and most over two ways that share nothing.
func (w *World) makeLinks(r *rand.Rand) {
	known := map[[2]int]bool{}
	var gates []*Node
	for _, c := range w.Clusters {
		w.ring(c.Nodes, known, r, len(c.Nodes)/4)
		gates = append(gates, c.Nodes[0])
	}
	w.ring(gates, known, r, len(gates)/3)
}

func (w *World) ring(nodes []*Node, known map[[2]int]bool, r *rand.Rand, chords int) {
	if len(nodes) < 2 {
		return
	}
	for i, n := range nodes {
		w.link(n, nodes[(i+1)%len(nodes)], known, r)
	}
	for range chords {
		w.link(nodes[r.IntN(len(nodes))], nodes[r.IntN(len(nodes))], known, r)
	}
}

func (w *World) link(a, b *Node, known map[[2]int]bool, r *rand.Rand) {
	key := [2]int{min(a.Index, b.Index), max(a.Index, b.Index)}
	if a == b || known[key] {
		return
	}
	known[key] = true
	l := &Link{Index: len(w.Links), A: w.Nodes[key[0]], B: w.Nodes[key[1]], Bandwidth: min(a.Kind.speed, b.Kind.speed), busy: 0.1 + 0.4*r.Float64()}
	l.Distance = haversine(a.Cluster.Latitude, a.Cluster.Longitude, b.Cluster.Latitude, b.Cluster.Longitude)
	// Light in glass goes 200 km in a millisecond, and cables go round corners.
	l.Latency = time.Duration((0.2 + 0.5*r.Float64() + l.Distance/200*1.4) * float64(time.Millisecond))
	w.Links = append(w.Links, l)
}

// haversine is the distance of two places, in km.
func haversine(lat1, lon1, lat2, lon2 float64) float64 {
	rad := math.Pi / 180
	a := math.Pow(math.Sin((lat2-lat1)*rad/2), 2) + math.Cos(lat1*rad)*math.Cos(lat2*rad)*math.Pow(math.Sin((lon2-lon1)*rad/2), 2)
	return 2 * 6371 * math.Asin(math.Sqrt(a))
}

var (
	profiles = []string{"Greenness", "Resilience"}
	classes  = []string{"Gold", "Silver", "BestEffort"}
	roles    = []string{"front", "store", "filter", "queue", "model"}
)

func (w *World) makeApplications(r *rand.Rand) {
	for i := range w.Options.Applications {
		a := &Application{Name: "app-" + strconv.Itoa(i+1), Profile: profiles[r.IntN(len(profiles))], QoS: classes[r.IntN(len(classes))]}
		for j := range 2 + r.IntN(len(roles)-1) {
			a.Services = append(a.Services, Service{Name: roles[j], CPU: 50 * (1 + r.IntN(8)), Memory: 64 << r.IntN(4), Port: 8000 + j})
			if j > 0 {
				a.Channels = append(a.Channels, Channel{
					Name: roles[j-1] + "-" + roles[j], From: j - 1, To: j, Bandwidth: 1 + r.IntN(10), Delay: time.Duration(20+r.IntN(180)) * time.Millisecond,
				})
			}
		}
		w.Applications = append(w.Applications, a)
	}
}

// neighbours are the links of each node.
func (w *World) neighbours() [][]*Link {
	all := make([][]*Link, len(w.Nodes))
	for _, l := range w.Links {
		all[l.A.Index] = append(all[l.A.Index], l)
		all[l.B.Index] = append(all[l.B.Index], l)
	}
	return all
}

// PathLengths is the mean number of hops from each node to the others.
func (w *World) PathLengths() []float64 {
	links := w.neighbours()
	means := make([]float64, len(w.Nodes))
	for i := range w.Nodes {
		hops := make([]int, len(w.Nodes))
		for j := range hops {
			hops[j] = -1
		}
		hops[i] = 0
		sum, reached := 0, 0
		for queue := []int{i}; len(queue) > 0; queue = queue[1:] {
			at := queue[0]
			for _, l := range links[at] {
				to := l.A.Index + l.B.Index - at
				if hops[to] < 0 {
					hops[to] = hops[at] + 1
					sum, reached = sum+hops[to], reached+1
					queue = append(queue, to)
				}
			}
		}
		if reached > 0 {
			means[i] = float64(sum) / float64(reached)
		}
	}
	return means
}

// names of nodes in the order of the world.
func (w *World) names() []string {
	all := make([]string, len(w.Nodes))
	for i, n := range w.Nodes {
		all[i] = n.Name
	}
	return slices.Clip(all)
}
