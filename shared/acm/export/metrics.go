// Package export gathers the metrics that CODECO's components tell each other (tables 13 to 16 of its deliverable D11) from where
// each is kept, checks them, and gives them to a Prometheus. What is not known, or cannot be true, is left out: no series, never zero.
// shared/docs/codeco-metrics.md is the page of all of them, and a test compares it with this package.
package export

import "math"

// Metric is one of them.
type Metric struct {
	Name      string
	Table     int    // of D11
	Attribute string // as the table calls it
	Unit      string
	Labels    []string
	// Least and Most are the values that it may have; Whole says that it counts.
	Least, Most float64
	Whole       bool
	Help        string
}

// Labels of what a series is about.
var (
	ofApp  = []string{"namespace", "app"}
	ofNode = []string{"cluster", "node"}
	ofLink = []string{"source", "target"}
)

// Metrics are all of them, by table.
var Metrics = []Metric{
	{"codeco_app_qos_level", 13, "QoS", "1 to 5", ofApp, 1, 5, true, "Class of service that was asked for: Gold 5, Silver 3, BestEffort 1"},
	{"codeco_app_requested_cpu_cores", 13, "cpu (spec)", "cores", ofApp, 0, inf, false, "Cores that one copy of each service asks for, in sum"},
	{"codeco_app_requested_memory_bytes", 13, "mem (spec)", "bytes", ofApp, 0, inf, true, "Memory that one copy of each service asks for, in sum"},
	{"codeco_app_failure_tolerance_percent", 13, "failure_tolerance", "percent", ofApp, 0, 100, false, "Tolerance of failures that was asked for: High 100, Medium 50, Low 0"},
	{"codeco_app_energy_limit_percent", 13, "energy_expenditure", "percent", ofApp, 0, 100, false, "Limit of energy that was asked for"},
	{"codeco_app_security_level", 13, "security_level", "1 to 5", ofApp, 1, 5, true, "Security that was asked for: High 5, Good 4, Medium 3, Low 2, None 1"},
	{"codeco_app_compliance_level", 13, "compliance_level", "1 to 5", ofApp, 1, 5, true, "Compliance that was asked for: High 5, Medium 3, Low 1"},
	{"codeco_app_input_data_bytes", 13, "Input_data_size", "bytes", ofApp, 0, inf, true, "Size of the data sets that its services read"},
	{"codeco_app_output_data_bytes", 13, "Output_data_size", "bytes", ofApp, 0, inf, true, "Size of the data sets that its services write"},
	{"codeco_app_cpu_cores", 13, "cpu (status)", "cores", ofApp, 0, inf, false, "Cores that its pods use"},
	{"codeco_app_memory_bytes", 13, "mem (status)", "bytes", ofApp, 0, inf, true, "Memory that its pods use"},
	{"codeco_app_portability_percent", 13, "portability (status)", "percent", ofApp, 0, 100, false, "Least portability of the nodes that it runs on"},
	{"codeco_node_cpu_cores", 14, "cpu", "cores", ofNode, 0, inf, false, "Cores in use"},
	{"codeco_node_memory_bytes", 14, "mem", "bytes", ofNode, 0, inf, true, "Memory in use"},
	{"codeco_node_failure_ratio", 14, "node_failure", "0 to 1", ofNode, 0, 1, false, "Exponential moving average of its failures"},
	{"codeco_node_energy_watts", 14, "node_energy", "watts", ofNode, 0, 1e6, false, "What it draws"},
	{"codeco_node_freshness_seconds", 15, "freshness", "seconds", ofNode, 0, inf, false, "Age of its newest telemetry"},
	{"codeco_node_compliance_level", 15, "compliance", "1 to 5", ofNode, 1, 5, true, "Compliance by its security score: High 5, Medium 3, Low 1"},
	{"codeco_node_portability_percent", 15, "portability", "percent", ofNode, 0, 100, false, "Part of the other nodes that could take what it runs"},
	{"codeco_node_input_data_bytes", 15, "input_data_size", "bytes", ofNode, 0, inf, true, "Size of the data sets that components on it read"},
	{"codeco_node_output_data_bytes", 15, "output_data_size", "bytes", ofNode, 0, inf, true, "Size of the data sets that components on it write"},
	{"codeco_link_failure_ratio", 16, "link_failure", "0 to 1", ofLink, 0, 1, false, "Exponential moving average of the part of packets that a link loses; 1 counts while it keeps its channels no longer, or is not heard of"},
	{"codeco_link_energy_watts", 16, "link_energy", "watts", ofLink, 0, 1e6, false, "Exponential moving average of what the link draws"},
	{"codeco_node_net_failure", 16, "node_net_failure", "sum of 0 to 1", ofNode, 0, inf, false, "Sum over its links of the moving averages of their failures, each link once"},
	{"codeco_node_egress_bandwidth_bits_per_second", 16, "ebw", "bit/s", ofNode, 0, inf, false, "Bandwidth that is left on its links outwards"},
	{"codeco_node_ingress_bandwidth_bits_per_second", 16, "ibw", "bit/s", ofNode, 0, inf, false, "Bandwidth that is left on the links to it"},
	{"codeco_node_degree", 16, "node_degree", "links", ofNode, 0, inf, true, "How many nodes it has links to"},
	{"codeco_node_latency_seconds", 16, "latency", "seconds", ofNode, 0, 3600, false, "Mean round trip over its links"},
	{"codeco_node_path_length", 16, "path_length", "links", ofNode, 0, inf, false, "Mean number of links on the fastest way to each other node that it reaches"},
	{"codeco_node_users", 16, "uid_visits", "users", ofNode, 0, inf, true, "Users at the access points of its zone"},
	{"codeco_node_latitude_degrees", 16, "geolocation", "degrees", ofNode, -90, 90, false, "Where it stands"},
	{"codeco_node_longitude_degrees", 16, "geolocation", "degrees", ofNode, -180, 180, false, "Where it stands"},
	{"codeco_node_zone", 16, "zone", "1", []string{"cluster", "node", "zone"}, 1, 1, true, "The zone that it is in, by its label"},
}

// Refused counts, by metric, the values that could not be true.
const Refused = "codeco_refused_values"

var inf = math.Inf(1)

// counted is the largest whole number of which float64 knows every smaller one.
const counted = 1 << 53

// admits reports whether the metric may have the value.
func (m *Metric) admits(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && v >= m.Least && v <= m.Most && (!m.Whole || v == math.Trunc(v) && math.Abs(v) <= counted)
}
