package topology

import (
	"math"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
)

// Engines of clusters and nodes.
const (
	Kubernetes    = kinds.Kubernetes
	Docker        = kinds.Docker
	EngineUnknown = "unknown"
)

// States of a device.
const (
	DeviceAvailable = "available"
	DeviceBusy      = "busy"
	DeviceDetached  = "detached"
	DeviceUnknown   = "unknown"
)

// Taxonomy is the whole infrastructure.
type Taxonomy struct {
	Timestamp  Timestamp          `json:"timestamp"`
	Controller struct{}           `json:"controller"` // ICOS never fills it
	Cluster    map[string]Cluster `json:"cluster"`    // by agent name
	// Warnings say in sentences what is missing or doubtful, such as a failed query. Not in ICOS.
	Warnings []string `json:"warnings,omitempty"`
}

// Timestamp says how old the topology is.
type Timestamp struct {
	OldestTimestamp Measure `json:"oldestTimestamp,omitzero"` // epoch seconds; the least recent node that is not lost
	TimeSinceOldest Measure `json:"timeSinceOldest,omitzero"` // seconds
	StaleAfter      Measure `json:"staleAfter,omitzero"`      // seconds of silence from which a node is lost. Not in ICOS
	SilentUntil     Measure `json:"silentUntil,omitzero"`     // epoch seconds; when telemetry last had no nodes at all. Not in ICOS
}

// Cluster is a set of nodes under one agent.
type Cluster struct {
	Type                  string                `json:"type"` // as in package kinds
	UUID                  string                `json:"uuid"`
	Name                  string                `json:"name"`
	Engine                string                `json:"engine"`
	AgentID               string                `json:"icosAgentID"`
	ClusterLink           bool                  `json:"clusterLink"`
	ServiceLevelAgreement ServiceLevelAgreement `json:"serviceLevelAgreement"`
	API                   API                   `json:"API"`
	Node                  map[string]Node       `json:"node"`
	// Pod holds pods whose node is unknown; in the older format, all pods.
	Pod map[string]Pod `json:"pod,omitempty"`
	Any any            `json:"any"`
}

// ServiceLevelAgreement is never filled by ICOS.
type ServiceLevelAgreement struct {
	Name string `json:"name"`
}

// API is never filled by ICOS.
type API struct {
	CommProtocol    string `json:"commProtocol"`
	ProtocolVersion string `json:"protocolVersion"`
	DataFormat      string `json:"dataFormat"`
	Authentication  string `json:"authentication"`
	Authorization   string `json:"authorization"`
}

// Node is one machine.
type Node struct {
	Type     string   `json:"type"`
	UUID     string   `json:"uuid"` // machine identifier
	Name     string   `json:"name"`
	Engine   string   `json:"engine"`
	Location Location `json:"location"`
	// LastSeen is the time of its newest telemetry in epoch seconds; unknown when the source did not say. Not in ICOS.
	LastSeen Measure `json:"lastSeen,omitzero"`
	// Schedulable is false for a drained node; nil means true, as in documents without the key. Not in ICOS.
	Schedulable *bool `json:"schedulable,omitempty"`
	// Vulnerabilities counts by severity in lower case: critical, high, medium, low and what else the scanner says.
	Vulnerabilities   map[string]int64            `json:"vulnerabilities,omitempty"`
	ScaScore          Measure                     `json:"ScaScore,omitzero"` // 0..100
	StaticMetrics     StaticMetrics               `json:"staticMetrics"`
	DynamicMetrics    DynamicMetrics              `json:"dynamicMetrics"`
	ForecastedMetrics ForecastedMetrics           `json:"forecastedMetrics"`
	NetworkInterfaces map[string]NetworkInterface `json:"networkInterfaces,omitempty"`
	Devices           map[string]Device           `json:"devices,omitempty"`
	Pod               map[string]Pod              `json:"pod,omitempty"` // by pod uid or container id
	Labels            map[string]string           `json:"labels,omitempty"`
	Hearing           Hearing                     `json:"hearing,omitzero"` // Not in ICOS

	// Series is a hash of the labels by which telemetry names the node, or zero. Only the store keeps it.
	Series int64 `json:"-"`

	// Identity is by what telemetry finds the node. Only the store keeps it.
	Identity Identity `json:"-"`
}

// Location says where a node stands; degrees.
type Location struct {
	Name      string  `json:"name"`
	Continent string  `json:"continent"`
	Country   string  `json:"country"`
	City      string  `json:"city"`
	Latitude  Measure `json:"latitude,omitzero"`
	Longitude Measure `json:"longitude,omitzero"`
}

// StaticMetrics is what a node has. Hz and bytes.
type StaticMetrics struct {
	CPUArchitecture string    `json:"cpuArchitecture"`
	CPUCores        Measure   `json:"cpuCores,omitzero"`
	CPUMaxFrequency Measure   `json:"cpuMaxFrequency,omitzero"`
	GPUCores        Measure   `json:"gpuCores,omitzero"`
	GPUMaxFrequency Measure   `json:"gpuMaxFrequency,omitzero"`
	GPURAMMemory    Measure   `json:"gpuRAMMemory,omitzero"`
	RAMMemory       Measure   `json:"RAMMemory,omitzero"`
	Storage         []Storage `json:"storage,omitempty"`
}

// Storage is one file system; bytes.
type Storage struct {
	Name     string  `json:"name"`
	Type     string  `json:"type"`
	Capacity Measure `json:"capacity,omitzero"`
}

// DynamicMetrics is how a node is doing. Seconds, Hz, degrees Celsius, joules, watts, bytes, percent 0..100.
type DynamicMetrics struct {
	UpTime               Measure          `json:"upTime,omitzero"`
	CPUFrequency         Measure          `json:"cpuFrequency,omitzero"`
	CPUTemperature       Measure          `json:"cpuTemperature,omitzero"`
	CPUEnergyConsumption Measure          `json:"cpuEnergyConsumption,omitzero"` // joules since the meter started
	CPUPowerWatts        Measure          `json:"cpuPowerWatts,omitzero"`        // present draw. Ours
	GPUFrequency         Measure          `json:"gpuFrequency,omitzero"`
	GPUTemperature       Measure          `json:"gpuTemperature,omitzero"`
	GPUEnergyConsumption Measure          `json:"gpuEnergyConsumption,omitzero"`
	FreeRAM              Measure          `json:"freeRAM,omitzero"` // what new programs can get, caches included
	UsedRAM              Measure          `json:"usedRAM,omitzero"`
	AvailableStorage     AvailableStorage `json:"availableStorage"`
	CPUUsagePercent      Measure          `json:"cpuUsagePercent,omitzero"`
	MemoryUsagePercent   Measure          `json:"memoryUsagePercent,omitzero"`
}

// AvailableStorage is the free part of one file system; bytes.
type AvailableStorage struct {
	Name string  `json:"name"`
	Free Measure `json:"free,omitzero"`
}

// ForecastedMetrics is what the intelligence layer expects; percent.
type ForecastedMetrics struct {
	CPUUtilizationPrediction    Measure `json:"cpuUtilizationPrediction,omitzero"`
	MemoryUtilizationPrediction Measure `json:"memoryUtilizationPrediction,omitzero"`
}

// NetworkInterface is one interface of a node; speed and traffic in bytes per second. The spellings are ICOS's.
type NetworkInterface struct {
	Name          string  `json:"name"`
	Type          string  `json:"type"` // duplex: full, half
	Speed         Measure `json:"speed,omitzero"`
	IP            string  `json:"ip"`
	Status        string  `json:"status"` // up, down
	SubnetMask    string  `json:"subnetMask"`
	IngressUssage Measure `json:"ingressUssage,omitzero"`
	EngressUssage Measure `json:"engressUssage,omitzero"`
}

// Device is something attached to a node that a component can ask for by path.
type Device struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Status string `json:"status"` // DeviceAvailable, ...
	Path   string `json:"path"`
}

// Pod is a pod, or a container of a Docker host.
type Pod struct {
	Name               string               `json:"name"` // {namespace}__{pod}
	IP                 string               `json:"ip"`
	Status             string               `json:"status"`
	NumberOfContainers int                  `json:"numberOfContainers"`
	NumberOfApps       int                  `json:"numberOfApps"`
	Container          map[string]Container `json:"container,omitempty"`
	Workload           map[string]Workload  `json:"workload,omitempty"` // by application instance
}

// Container is one container of a pod; memory in bytes, cpu in cores.
type Container struct {
	Name            string  `json:"name"`
	IP              string  `json:"ip"`
	Node            string  `json:"node"`
	Port            string  `json:"port"`
	ContainerMemory Measure `json:"containerMemory,omitzero"`
	CPUUsage        Measure `json:"cpuUsage,omitzero"`
}

// Workload says which application a pod belongs to.
type Workload struct {
	AppName      string `json:"icos_app_name"`
	AppInstance  string `json:"icos_app_instance"`
	AppComponent string `json:"icos_app_component"`
}

// CanSchedule reports whether the node takes new work; a node that does not say does.
func (n *Node) CanSchedule() bool { return n.Schedulable == nil || *n.Schedulable }

// SeenAt returns the time of the newest telemetry; ok is false when the source did not say.
func (n *Node) SeenAt() (at time.Time, ok bool) {
	s, ok := n.LastSeen.Get()
	if !ok {
		return time.Time{}, false
	}
	return fromSeconds(s), true
}

// Freshness is the setting by which a node is lost.
type Freshness struct {
	StaleAfter time.Duration `envconfig:"STALE_AFTER" default:"60s"` // age of its telemetry
}

// Lost reports whether the node has been silent for longer than staleAfter. One that does not say when it was seen is
// not lost.
func (n *Node) Lost(now time.Time, staleAfter time.Duration) bool {
	seen, ok := n.SeenAt()
	return ok && now.Sub(seen) > staleAfter
}

func fromSeconds(s float64) time.Time {
	whole, part := math.Modf(s)
	return time.Unix(int64(whole), int64(part*1e9)).UTC()
}

func toSeconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// Identity are the labels by which series find a node, beside its UUID and name.
type Identity struct {
	Controller, Cluster, HostName string // icos_controller_id, icos_cluster_id, icos_host_name
	Hostname, IP                  string // as the security scanner knows the host
}

// text is how the identity is stored. Values of labels have no line ends.
func (i Identity) text() string {
	return strings.Join([]string{i.Controller, i.Cluster, i.HostName, i.Hostname, i.IP}, "\n")
}

func identityOf(text string) (i Identity) {
	for _, part := range []*string{&i.Controller, &i.Cluster, &i.HostName, &i.Hostname, &i.IP} {
		*part, text, _ = strings.Cut(text, "\n")
	}
	return i
}
