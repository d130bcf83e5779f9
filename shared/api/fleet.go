package api

// Fleet is the simulated infrastructure of a laptop host.
type Fleet struct {
	Clusters []FleetCluster    `json:"clusters"`
	Failing  map[string]string `json:"failing,omitempty"` // crash, pull-error or slow, by "component" or "application/component"
}

// FleetCluster is one simulated cluster.
type FleetCluster struct {
	Name         string      `json:"name"`
	Agent        string      `json:"agent"`
	Orchestrator string      `json:"orchestrator"`
	Cut          bool        `json:"cut"`
	Nodes        []FleetNode `json:"nodes"`
	Tasks        int         `json:"tasks"` // jobs taken and not yet reported as done
}

// FleetNode is one simulated node. Shares are 0..1, energy is in watts, memory in bytes.
type FleetNode struct {
	Name    string            `json:"name"`
	Engine  string            `json:"engine"`
	Arch    string            `json:"arch"`
	Drained bool              `json:"drained"`
	Silent  bool              `json:"silent"` // reports nothing
	Cores   int               `json:"cores"`
	RAM     int64             `json:"ram"`
	CPU     float64           `json:"cpu"` // used, by all
	Memory  float64           `json:"mem"` // used, by all
	Score   *float64          `json:"sca,omitempty"`
	Watts   float64           `json:"energy"`
	Devices map[string]string `json:"devices,omitempty"` // state by path
	Labels  map[string]string `json:"labels,omitempty"`
	Tells   string            `json:"telemetry,omitempty"` // node: reports only itself; none: reports nothing
	Compss  map[string]string `json:"compss,omitempty"`    // TASKS@SECONDS by task
	Events  map[string]string `json:"events,omitempty"`    // COUNT@SEVERITY by name
	Copies  []FleetCopy       `json:"copies,omitempty"`
}

// FleetCopy is what a node runs for a job.
type FleetCopy struct {
	Job         string `json:"job"`
	Name        string `json:"name"`
	Application string `json:"application"`
	Component   string `json:"component"`
	Epoch       int64  `json:"epoch"`
	Pods        int    `json:"pods"` // running ones
	Running     bool   `json:"running"`
	Message     string `json:"message"`
}

// FleetCommand changes the fleet: drain, restore and set are for a node, cut and heal for a cluster. A set without a node
// is about components, by keys such as app:web or app:hello/web.
type FleetCommand struct {
	Node    string            `json:"node,omitempty"`
	Cluster string            `json:"cluster,omitempty"`
	Set     map[string]string `json:"set,omitempty"`
}
