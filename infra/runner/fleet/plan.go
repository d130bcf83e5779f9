package fleet

import (
	"cmp"
	"crypto/md5" // makes stable identifiers, guards nothing
	_ "embed"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/generator"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/topology"
)

//go:embed default.json
var defaultFleet []byte

// Plan is the initial content of a fleet.
type Plan struct {
	Clusters []*Cluster // by name
}

// Cluster is a set of nodes under one agent.
type Cluster struct {
	Name      string // used in job targets
	Key       string // in the taxonomy: the name of its agent
	AgentID   string
	Type      string // orchestrator: ocm, nuvla
	UUID      string
	ClusterIP string // first two bytes of the addresses of nodes without their own
	Link      bool   // connected to a ClusterLink
	Nodes     []*Node
}

// Node is one machine.
type Node struct {
	Name     string
	HostID   string // 32 hex digits
	Engine   string // topology.Kubernetes, topology.Docker
	Arch     string // as in uname: x86_64, aarch64
	Cores    int
	RAM      int64   // bytes
	MaxMHz   float64 // of each cpu
	IP       string
	Netmask  string
	Speed    float64 // of the network, in bytes/s
	Location topology.Location
	Score    float64 // security, 0..100; negative = never scanned
	Flaws    map[string]int64
	Devices  map[string]Device // by path
	Labels   map[string]string

	OthersCPU    float64 // the share of the cpu that others use, 0..1
	OthersMemory float64 // the same for memory
	Watts        float64 // draw at half load
	Joules       float64 // of its meter at the beginning
}

// Device is something attached to a node.
type Device struct {
	Name  string
	State string // topology.DeviceAvailable, DeviceBusy, DeviceDetached
}

// Defaults for nodes whose file does not say it.
const (
	defaultCores  = 4
	defaultRAM    = 8 << 30
	defaultMHz    = 2400
	defaultSpeed  = 125_000_000 // 1 Gbit/s
	defaultOthers = 0.10
	maxCores      = 1024 // of one node: each cpu has its own series
)

// Default returns the built-in fleet.
func Default() *Plan {
	p, err := parsePlan(defaultFleet)
	if err != nil {
		panic(err) // the file is embedded, and a test reads it
	}
	return p
}

// Load reads a fleet from an ICOS taxonomy in either format.
func Load(path string) (*Plan, error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	p, err := parsePlan(body)
	if err != nil {
		return nil, fmt.Errorf("fleet %s: %w", path, err)
	}
	return p, nil
}

// Generated makes a fleet up from options such as "nodes=500,seed=7".
func Generated(options string) (*Plan, error) {
	o, err := generator.Parse(options)
	if err != nil {
		return nil, err
	}
	w, err := generator.New(o)
	if err != nil {
		return nil, err
	}
	body, err := w.Taxonomy()
	if err != nil {
		return nil, fmt.Errorf("generated fleet: %w", err)
	}
	return parsePlan(body)
}

// AgentIDs lists the agents of the fleet, one per cluster.
func (p *Plan) AgentIDs() []string {
	ids := make([]string, len(p.Clusters))
	for i, c := range p.Clusters {
		ids[i] = c.AgentID
	}
	return ids
}

func parsePlan(body []byte) (*Plan, error) {
	taxonomy, err := topology.Parse(body)
	if err != nil {
		return nil, err
	}
	p := &Plan{}
	hosts, agents := map[string]bool{}, map[string]bool{}
	for _, place := range taxonomy.Places() { // by cluster and node name
		if len(p.Clusters) == 0 || p.Clusters[len(p.Clusters)-1].Name != place.Cluster {
			p.Clusters = append(p.Clusters, newCluster(place, len(p.Clusters), agents))
		}
		c := p.Clusters[len(p.Clusters)-1]
		c.Nodes = append(c.Nodes, newNode(c, place, hosts))
	}
	if len(p.Clusters) == 0 {
		return nil, fmt.Errorf("the taxonomy has no node")
	}
	return p, nil
}

func newCluster(place topology.Place, index int, agents map[string]bool) *Cluster {
	in := place.In
	c := &Cluster{
		Name: place.Cluster, Key: place.ClusterKey, AgentID: cmp.Or(in.AgentID, place.Cluster),
		Type: cmp.Or(in.Type, kinds.OCM), UUID: cmp.Or(in.UUID, stableUUID("cluster", place.Cluster)),
		ClusterIP: fmt.Sprintf("10.%d", index%200), Link: in.ClusterLink,
	}
	if agents[c.AgentID] { // an agent belongs to one cluster
		c.AgentID = c.Name
	}
	agents[c.AgentID] = true
	if kind, _ := kinds.Of(c.Type); !kind.Agents {
		// Only with Open Cluster Management do a cluster and its agent have different names (tlum_ocm_agent_info).
		c.Key = c.Name
	}
	return c
}

var hostID = regexp.MustCompile(`^[0-9a-f]{32}$`)

func newNode(c *Cluster, place topology.Place, hosts map[string]bool) *Node {
	at := place.At
	static, dynamic := at.StaticMetrics, at.DynamicMetrics
	n := &Node{
		Name: place.Node, HostID: strings.ReplaceAll(strings.ToLower(at.UUID), "-", ""), Engine: at.Engine,
		Arch: cmp.Or(static.CPUArchitecture, "x86_64"), Location: at.Location, Labels: at.Labels,
		Cores:  min(maxCores, max(1, int(math.Round(static.CPUCores.Or(defaultCores))))),
		RAM:    max(1, int64(static.RAMMemory.Or(defaultRAM))),
		MaxMHz: static.CPUMaxFrequency.Or(defaultMHz*1e6) / 1e6,
		Score:  at.ScaScore.Or(-1), Flaws: at.Vulnerabilities, Devices: map[string]Device{},
		OthersCPU:    min(1, dynamic.CPUUsagePercent.Or(defaultOthers*100)/100),
		OthersMemory: defaultOthers, Joules: dynamic.CPUEnergyConsumption.Or(0),
	}
	if n.Engine == topology.EngineUnknown {
		n.Engine = topology.Kubernetes
	}
	if !hostID.MatchString(n.HostID) || hosts[n.HostID] {
		n.HostID = stableHex("host", c.Name, n.Name)
	}
	hosts[n.HostID] = true
	if used, ok := at.UsedMemoryBytes(); ok && n.RAM > 0 {
		n.OthersMemory = min(1, float64(used)/float64(n.RAM))
	} else if percent, ok := dynamic.MemoryUsagePercent.Get(); ok {
		n.OthersMemory = min(1, percent/100)
	}
	n.Watts = dynamic.CPUPowerWatts.Or(wattsPerCore(n.Arch) * float64(n.Cores))
	for key, d := range at.Devices {
		state := cmp.Or(d.Status, topology.DeviceAvailable)
		n.Devices[cmp.Or(d.Path, d.Name, key)] = Device{Name: cmp.Or(d.Name, key), State: state}
	}
	n.connect(c, at)
	return n
}

// connect gives the node its first interface that has an address, else an address in the cluster's own network.
func (n *Node) connect(c *Cluster, at *topology.Node) {
	index := len(c.Nodes)
	n.IP, n.Netmask = fmt.Sprintf("%s.%d.%d", c.ClusterIP, index/250, index%250+1), "255.255.0.0"
	n.Speed = defaultSpeed
	names := make([]string, 0, len(at.NetworkInterfaces))
	for name := range at.NetworkInterfaces {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if i := at.NetworkInterfaces[name]; i.IP != "" {
			n.IP, n.Netmask, n.Speed = i.IP, i.SubnetMask, i.Speed.Or(defaultSpeed)
			return
		}
	}
}

// wattsPerCore is a rule of thumb for small arm64 boards and for servers.
func wattsPerCore(arch string) float64 {
	if arch == "aarch64" || arch == "arm64" {
		return 1.5
	}
	return 8
}

// stableHex returns 32 hex digits that are the same for the same words in every run.
func stableHex(words ...string) string {
	sum := md5.Sum([]byte(strings.Join(words, "\x00")))
	return hex.EncodeToString(sum[:])
}

var space = uuid.MustParse("5f0a1b0e-6a55-5d0e-9f86-6c8f4a2f7a11")

func stableUUID(words ...string) string {
	return uuid.NewSHA1(space, []byte(strings.Join(words, "\x00"))).String()
}
