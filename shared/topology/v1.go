package topology

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// V1 is the shape of ICOS 1.2.5: clusters by name, pods by name at cluster level, and nothing of what came later.
type V1 struct {
	Timestamp  Timestamp            `json:"timestamp"`
	Controller struct{}             `json:"controller"`
	Cluster    map[string]V1Cluster `json:"cluster"`
	Warnings   []string             `json:"warnings,omitempty"` // ours, as in Taxonomy
}

// V1Cluster is a cluster of V1.
type V1Cluster struct {
	Type                  string            `json:"type"`
	UUID                  string            `json:"uuid"`
	Name                  string            `json:"name"`
	ServiceLevelAgreement struct{}          `json:"serviceLevelAgreement"`
	API                   struct{}          `json:"API"`
	Node                  map[string]V1Node `json:"node"`
	Pod                   map[string]V1Pod  `json:"pod"`
}

// V1Node is a node of V1.
type V1Node struct {
	Type              string                        `json:"type"`
	UUID              string                        `json:"uuid"`
	Name              string                        `json:"name"`
	Location          Location                      `json:"location"`
	Vulnerabilities   map[string]int64              `json:"vulnerabilities,omitempty"` // capitalised
	ScaScore          Measure                       `json:"ScaScore,omitzero"`
	StaticMetrics     V1StaticMetrics               `json:"staticMetrics"`
	DynamicMetrics    V1DynamicMetrics              `json:"dynamicMetrics"`
	NetworkInterfaces map[string]V1NetworkInterface `json:"networkInterfaces,omitempty"`
	Devices           map[string]Device             `json:"devices,omitempty"`
}

// V1StaticMetrics has the graphics card's numbers as text.
type V1StaticMetrics struct {
	CPUArchitecture string    `json:"cpuArchitecture"`
	CPUCores        Measure   `json:"cpuCores,omitzero"`
	CPUMaxFrequency Measure   `json:"cpuMaxFrequency,omitzero"`
	GPUCores        Measure   `json:"gpuCores,omitzero"`
	GPUMaxFrequency string    `json:"gpuMaxFrequency,omitempty"`
	GPURAMMemory    string    `json:"gpuRAMMemory,omitempty"`
	RAMMemory       Measure   `json:"RAMMemory,omitzero"`
	Storage         []Storage `json:"storage,omitempty"`
}

// V1DynamicMetrics has frequencies as text.
type V1DynamicMetrics struct {
	UpTime               Measure          `json:"upTime,omitzero"`
	CPUFrequency         string           `json:"cpuFrequency,omitempty"`
	CPUTemperature       Measure          `json:"cpuTemperature,omitzero"`
	CPUEnergyConsumption Measure          `json:"cpuEnergyConsumption,omitzero"`
	GPUFrequency         string           `json:"gpuFrequency,omitempty"`
	GPUTemperature       Measure          `json:"gpuTemperature,omitzero"`
	GPUEnergyConsumption Measure          `json:"gpuEnergyConsumption,omitzero"`
	FreeRAM              Measure          `json:"freeRAM,omitzero"`
	AvailableStorage     AvailableStorage `json:"availableStorage"`
}

// V1NetworkInterface has traffic as text.
type V1NetworkInterface struct {
	Name          string  `json:"name"`
	Type          string  `json:"type"`
	Speed         Measure `json:"speed,omitzero"`
	IP            string  `json:"ip"`
	Status        string  `json:"status"`
	SubnetMask    string  `json:"subnetMask"`
	IngressUssage string  `json:"ingressUssage,omitempty"`
	EngressUssage string  `json:"engressUssage,omitempty"`
}

// V1Pod is a pod of V1, without workload.
type V1Pod struct {
	Name               string                 `json:"name"`
	IP                 string                 `json:"ip"`
	Status             string                 `json:"status"`
	NumberOfContainers int                    `json:"numberOfContainers"`
	NumberOfApps       int                    `json:"numberOfApps"`
	Container          map[string]V1Container `json:"container,omitempty"`
}

// V1Container has its memory as text.
type V1Container struct {
	Name            string  `json:"name"`
	IP              string  `json:"ip"`
	Node            string  `json:"node"`
	Port            string  `json:"port"`
	ContainerMemory string  `json:"containerMemory,omitempty"`
	CPUUsage        Measure `json:"cpuUsage,omitzero"`
}

// V1 renders the taxonomy in the older shape.
func (t *Taxonomy) V1() V1 {
	v := t.v1Head()
	v.Cluster = make(map[string]V1Cluster, len(t.Cluster))
	clusterNames := t.ClusterNames()
	for key, c := range t.Cluster {
		v.Cluster[clusterNames[key]] = v1Cluster(&c, clusterNames[key])
	}
	return v
}

// v1Head is the older shape without clusters.
func (t *Taxonomy) v1Head() V1 {
	timestamp := t.Timestamp
	timestamp.StaleAfter, timestamp.SilentUntil = Measure{}, Measure{} // older readers do not know them
	return V1{Timestamp: timestamp, Warnings: t.Warnings}
}

func v1Cluster(c *Cluster, name string) V1Cluster {
	old := V1Cluster{
		Type: c.Type, UUID: c.UUID, Name: cmp.Or(c.Name, name),
		Node: make(map[string]V1Node, len(c.Node)), Pod: v1Pods(c),
	}
	nodeNames := names(c.Node, func(n Node) string { return n.Name })
	for key, n := range c.Node {
		old.Node[nodeNames[key]] = v1Node(&n, c.Type)
	}
	return old
}

func v1Node(n *Node, clusterType string) V1Node {
	s, d := n.StaticMetrics, n.DynamicMetrics
	old := V1Node{
		Type: cmp.Or(n.Type, clusterType), UUID: n.UUID, Name: n.Name, Location: n.Location, ScaScore: n.ScaScore,
		Devices: n.Devices,
		StaticMetrics: V1StaticMetrics{
			CPUArchitecture: s.CPUArchitecture, CPUCores: s.CPUCores, CPUMaxFrequency: s.CPUMaxFrequency,
			GPUCores: s.GPUCores, GPUMaxFrequency: text(s.GPUMaxFrequency), GPURAMMemory: text(s.GPURAMMemory),
			RAMMemory: s.RAMMemory, Storage: s.Storage,
		},
		DynamicMetrics: V1DynamicMetrics{
			UpTime: d.UpTime, CPUFrequency: text(d.CPUFrequency), CPUTemperature: d.CPUTemperature,
			CPUEnergyConsumption: d.CPUEnergyConsumption, GPUFrequency: text(d.GPUFrequency),
			GPUTemperature: d.GPUTemperature, GPUEnergyConsumption: d.GPUEnergyConsumption, FreeRAM: d.FreeRAM,
			AvailableStorage: d.AvailableStorage,
		},
	}
	for severity, count := range n.Vulnerabilities {
		if old.Vulnerabilities == nil {
			old.Vulnerabilities = map[string]int64{}
		}
		old.Vulnerabilities[capitalise(severity)] = count
	}
	for key, i := range n.NetworkInterfaces {
		if old.NetworkInterfaces == nil {
			old.NetworkInterfaces = map[string]V1NetworkInterface{}
		}
		old.NetworkInterfaces[key] = V1NetworkInterface{
			Name: i.Name, Type: i.Type, Speed: i.Speed, IP: i.IP, Status: i.Status, SubnetMask: i.SubnetMask,
			IngressUssage: text(i.IngressUssage), EngressUssage: text(i.EngressUssage),
		}
	}
	return old
}

// v1Pods gathers the pods of all nodes by bare name, or by the name with namespace where two namespaces have the same.
func v1Pods(c *Cluster) map[string]V1Pod {
	type found struct {
		node, key string
		pod       Pod
	}
	var all []found
	for _, nodeKey := range slices.Sorted(maps.Keys(c.Node)) {
		n := c.Node[nodeKey]
		for _, key := range slices.Sorted(maps.Keys(n.Pod)) {
			all = append(all, found{cmp.Or(n.Name, nodeKey), key, n.Pod[key]})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.Pod)) {
		all = append(all, found{"", key, c.Pod[key]})
	}
	seen := map[string]int{}
	for _, f := range all {
		seen[bareName(f.pod.Name)]++
	}
	pods := make(map[string]V1Pod, len(all))
	for _, f := range all {
		name := bareName(f.pod.Name)
		if seen[name] > 1 {
			name = f.pod.Name
		}
		if _, taken := pods[name]; taken || name == "" {
			name = f.key
		}
		pods[name] = v1Pod(&f.pod, name, f.node)
	}
	return pods
}

func v1Pod(p *Pod, name, node string) V1Pod {
	old := V1Pod{
		Name: name, IP: p.IP, Status: p.Status,
		NumberOfContainers: p.NumberOfContainers, NumberOfApps: p.NumberOfApps,
	}
	for key, c := range p.Container {
		if old.Container == nil {
			old.Container = make(map[string]V1Container, len(p.Container))
		}
		old.Container[key] = V1Container{
			Name: c.Name, IP: c.IP, Node: cmp.Or(c.Node, node), Port: c.Port,
			ContainerMemory: text(c.ContainerMemory), CPUUsage: c.CPUUsage,
		}
	}
	return old
}

// bareName is the pod's name without the namespace before it.
func bareName(name string) string {
	if _, bare, found := strings.Cut(name, "__"); found {
		return bare
	}
	return name
}

func text(m Measure) string {
	v, known := m.Get()
	if !known {
		return ""
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

func capitalise(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return s
	}
	return string(unicode.ToUpper(first)) + s[size:]
}
