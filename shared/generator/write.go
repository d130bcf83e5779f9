package generator

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"
)

// object is one of JSON.
type object = map[string]any

// Taxonomy is the world as ICOS' aggregator would tell it, at its beginning.
func (w *World) Taxonomy() ([]byte, error) {
	clusters := object{}
	for i, c := range w.Clusters {
		engine, agent := "Kubernetes", "agent-"+c.Name
		if c.Type == "nuvla" {
			engine = "Docker"
		}
		nodes := object{}
		for _, n := range c.Nodes {
			nodes[n.Name] = w.taxonomyNode(n, engine)
		}
		clusters[agent] = object{
			"type": c.Type, "uuid": id("cluster", c.Name), "name": c.Name, "engine": engine, "icosAgentID": agent, "clusterLink": i%2 == 0, "node": nodes,
		}
	}
	return json.MarshalIndent(object{"timestamp": object{}, "controller": object{}, "cluster": clusters}, "", "  ")
}

func (w *World) taxonomyNode(n *Node, engine string) object {
	return object{
		"type": "", "uuid": strings.ReplaceAll(id("node", n.Name), "-", ""), "name": n.Name, "engine": engine,
		"location": object{
			"name": n.Cluster.City.Name, "continent": "Europe", "country": n.Cluster.City.Country, "city": n.Cluster.City.Name,
			"latitude": n.Cluster.Latitude, "longitude": n.Cluster.Longitude,
		},
		"ScaScore":      n.Security,
		"staticMetrics": object{"cpuArchitecture": n.Kind.Arch, "cpuCores": n.Cores, "cpuMaxFrequency": n.Kind.mhz * 1e6, "RAMMemory": n.Memory},
		"dynamicMetrics": object{
			"cpuUsagePercent": 100 * n.base, "memoryUsagePercent": 100 * (0.2 + 0.5*n.base), "cpuPowerWatts": n.Idle + (n.Peak-n.Idle)*n.base, "cpuEnergyConsumption": 0,
		},
		"networkInterfaces": object{"eth0": object{
			"name": "eth0", "type": "full", "speed": n.Kind.speed / 8, "ip": fmt.Sprintf("10.%d.%d.%d", n.Index/62500%200, n.Index/250%250, n.Index%250+1),
			"status": "up", "subnetMask": "255.0.0.0",
		}},
		"labels": object{"zone": n.Zone, "tier": n.Kind.Name, "site": n.Cluster.Name},
	}
}

// id is the same in each world for the same words.
func id(kind, name string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("urn:littoral:generated:"+kind+":"+name)).String()
}

// NetworkTopology is the network as a document for PUT /swm/topologies/{name}: each link is two, one for each direction, on a
// medium of its own.
func (w *World) NetworkTopology() ([]byte, error) {
	nodes, links := []object{}, []object{}
	for _, n := range w.Nodes {
		nodes = append(nodes, object{"name": n.Name, "type": "COMPUTE"})
	}
	for _, l := range w.Links {
		for _, ends := range [][2]string{{l.A.Name, l.B.Name}, {l.B.Name, l.A.Name}} {
			links = append(links, object{"source": ends[0], "target": ends[1], "capabilities": object{
				"bandWidthBits": fmt.Sprintf("%.0f", l.Bandwidth), "latencyNanos": fmt.Sprint(l.Latency.Nanoseconds()),
			}})
		}
	}
	return json.MarshalIndent(object{
		"apiVersion": "qos-scheduler.siemens.com/v1alpha1", "kind": "NetworkTopology", "metadata": object{"name": "generated"},
		"spec": object{"networkImplementation": "GENERATED", "nodes": nodes, "links": links},
	}, "", " ")
}

// TopologyJSON is the matrix that CODECO's forecasts read, with each node joined to itself. With legacy faults it is not symmetric.
func (w *World) TopologyJSON(legacy bool) ([]byte, error) {
	matrix := make([][]int, len(w.Nodes))
	for i := range matrix {
		matrix[i] = make([]int, len(w.Nodes))
		matrix[i][i] = 1
	}
	r := w.numbers("legacy matrix")
	for _, l := range w.Links {
		matrix[l.A.Index][l.B.Index], matrix[l.B.Index][l.A.Index] = 1, 1
		if legacy && r.IntN(5) == 0 {
			matrix[l.B.Index][l.A.Index] = 0
		}
	}
	return json.Marshal(object{"node_names": w.names(), "connections": matrix})
}

// WriteCSV runs a simulation to its end and writes data.csv: a row for each node and step. Lists have semicolons.
func (s *Simulation) WriteCSV(to io.Writer, legacy bool) error {
	out := bufio.NewWriter(to)
	fmt.Fprintln(out, "time,node,"+strings.Join(columns, ",")) // a failure stays with the writer, until Flush
	r := s.World.numbers("legacy")
	var held []string // rows that legacy faults write later than they are
	for {
		for _, n := range s.World.Nodes {
			if !s.Present(n) {
				continue
			}
			row := s.Row(n)
			if legacy {
				row = s.legacy(row, n, r)
			}
			line := s.line(n, row)
			if legacy && r.IntN(100) == 0 {
				held = append(held, line)
				continue
			}
			fmt.Fprintln(out, line)
		}
		held = release(out, held, r)
		if !s.Next() {
			break
		}
	}
	for _, line := range held {
		fmt.Fprintln(out, line)
	}
	return out.Flush()
}

// release writes some of the rows that were held back.
func release(out io.Writer, held []string, r *rand.Rand) []string {
	var rest []string
	for _, line := range held {
		if r.IntN(3) > 0 {
			rest = append(rest, line)
			continue
		}
		fmt.Fprintln(out, line)
	}
	return rest
}

func (s *Simulation) line(n *Node, row Row) string {
	cells := []string{s.At.Format(time.DateTime), n.Name}
	for _, column := range columns {
		cells = append(cells, strings.ReplaceAll(row[column], ",", ";"))
	}
	return strings.Join(cells, ",")
}

// kindsOfObjects are CODECO's objects with their columns.
var kindsOfObjects = []struct {
	plural, kind, namespace string
	columns                 []string
}{
	{"acm-mons", "AcmMon", "he-codeco-acm", []string{"cpu", "mem", "node_failure", "node_energy", "node_sec"}},
	{"mdm-mons", "MdmMon", "he-codeco-mdm", []string{"freshness", "compliance", "portability"}},
	{"netma-mons", "NetmaMon", "he-codeco-netma", []string{
		"link_id", "link_failure", "node_net_failure", "ebw", "ibw", "latency", "uid_visits", "uid_location", "zone", "node_degree", "path_length",
		"link_energy", "node_net_energy",
	}},
}

// whole are the columns that are whole numbers in the objects.
var whole = map[string]bool{"node_failure": true, "link_failure": true, "node_net_failure": true, "node_degree": true}

// Objects are the custom objects acm-mons, mdm-mons and netma-mons at this time, as documents by their plural.
func (s *Simulation) Objects() (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, k := range kindsOfObjects {
		var documents []byte
		for _, n := range s.World.Nodes {
			row, spec := s.Row(n), object{"node_name": n.Name}
			for _, column := range k.columns {
				spec[column] = row[column]
				if whole[column] { // averages of failures in hundredths
					var v float64
					if _, err := fmt.Sscan(row[column], &v); err != nil {
						return nil, err
					}
					if column != "node_degree" {
						v *= 100
					}
					spec[column] = int(v)
				}
			}
			text, err := json.Marshal(object{
				"apiVersion": "codeco.com/v1", "kind": k.kind, "metadata": object{"name": n.Name + "-object", "namespace": k.namespace}, "spec": spec,
			})
			if err != nil {
				return nil, err
			}
			documents = append(append(documents, text...), "\n---\n"...)
		}
		all[k.plural] = documents
	}
	return all, nil
}

// CodecoApps are the applications as documents that "littoral apply" takes.
func (w *World) CodecoApps() ([]byte, error) {
	var documents []byte
	for _, a := range w.Applications {
		var services []object
		for i, sv := range a.Services {
			channels := []object{}
			for _, c := range a.Channels {
				if c.From == i {
					channels = append(channels, object{
						"channelName": c.Name, "otherService": object{"serviceName": a.Services[c.To].Name, "appName": a.Name, "port": a.Services[c.To].Port},
						"serviceClass": "BESTEFFORT",
						"advancedChannelSettings": object{
							"minBandwidth": fmt.Sprintf("%dM", c.Bandwidth), "maxDelay": fmt.Sprintf("%de-3", c.Delay.Milliseconds()),
						},
					})
				}
			}
			services = append(services, object{"serviceName": sv.Name, "serviceChannels": channels, "podspec": object{"containers": []object{{
				"name": sv.Name, "image": "registry.example/" + sv.Name + ":1", "ports": []object{{"containerPort": sv.Port}},
				"resources": object{"requests": object{"cpu": fmt.Sprintf("%dm", sv.CPU), "memory": fmt.Sprintf("%dMi", sv.Memory)}},
			}}}})
		}
		text, err := json.Marshal(object{
			"apiVersion": "codeco.he-codeco.eu/v1alpha1", "kind": "CodecoApp", "metadata": object{"name": a.Name},
			"spec": object{"appName": a.Name, "qosClass": a.QoS, "performanceProfile": a.Profile, "codecoapp-msspec": services},
		})
		if err != nil {
			return nil, err
		}
		documents = append(append(documents, text...), "\n---\n"...)
	}
	return documents, nil
}

// WriteMetrics runs a simulation to its end and writes what Prometheus would have, in the text format with timestamps: network
// metrics with one name and labels for both ends.
func (s *Simulation) WriteMetrics(to io.Writer) error {
	out := bufio.NewWriter(to)
	for _, name := range []string{"node_cpu_usage_percent", "node_memory_usage_percent", "node_up", "node_power_watts", "net_rtt_ms", "net_jitter_ms", "net_throughput_kbps"} {
		fmt.Fprintf(out, "# TYPE %s gauge\n", name)
	}
	for {
		at := s.At.UnixMilli()
		for _, n := range s.World.Nodes {
			if !s.Present(n) {
				continue
			}
			state, up := s.nodes[n.Index], 1
			if state.down > 0 {
				up = 0
			}
			labels := fmt.Sprintf(`{cluster=%q,node=%q}`, n.Cluster.Name, n.Name)
			fmt.Fprintf(out, "node_cpu_usage_percent%s %.2f %d\nnode_memory_usage_percent%s %.2f %d\nnode_up%s %d %d\nnode_power_watts%s %.2f %d\n",
				labels, 100*state.cpu, at, labels, 100*state.memory, at, labels, up, at, labels, n.Idle+(n.Peak-n.Idle)*state.cpu, at)
		}
		for _, l := range s.World.Links {
			e := s.edges[l.Index]
			if e.down > 0 {
				continue
			}
			labels := fmt.Sprintf(`{source_node=%q,target_node=%q}`, l.A.Name, l.B.Name)
			fmt.Fprintf(out, "net_rtt_ms%s %.3f %d\nnet_jitter_ms%s %.3f %d\nnet_throughput_kbps%s %.0f %d\n",
				labels, float64(e.rtt)/1e6, at, labels, float64(e.jitter)/1e6, at, labels, l.Bandwidth*(1-e.used)/1000, at)
		}
		if !s.Next() {
			return out.Flush()
		}
	}
}

// Events are the world as events for POST /publish/event, in lists of at most a size.
func (w *World) Events(size int) ([][]byte, error) {
	var all []object
	entity := func(kind, name string, attributes object) {
		attributes["json_schema_ref"], attributes["identifier"] = "urn:littoral:"+kind+":1", name
		all = append(all, attributes)
	}
	relation := func(kind, fromKind, from, toKind, to string) {
		all = append(all, object{"json_schema_ref": "urn:littoral:" + kind + ":1", "from_edf_id": edf(fromKind, from), "to_edf_id": edf(toKind, to)})
	}
	for _, c := range w.Clusters {
		entity("cluster", c.Name, object{"city": c.City.Name, "country": c.City.Country, "type": c.Type})
		for _, n := range c.Nodes {
			name := c.Name + "/" + n.Name
			entity("compute", name, object{"cpu": n.Cores, "memory": n.Memory, "arch": n.Kind.Arch, "zone": n.Zone, "compliance": level(n.Security)})
			relation("IN", "compute", name, "cluster", c.Name)
		}
	}
	for _, l := range w.Links {
		relation("LINK", "compute", l.A.Cluster.Name+"/"+l.A.Name, "compute", l.B.Cluster.Name+"/"+l.B.Name)
	}
	for _, a := range w.Applications {
		entity("app", a.Name, object{"profile": a.Profile, "qos": a.QoS})
		for _, sv := range a.Services {
			entity("component", a.Name+"/"+sv.Name, object{"cpu": sv.CPU, "memory": sv.Memory})
			relation("PART_OF", "component", a.Name+"/"+sv.Name, "app", a.Name)
		}
		for _, c := range a.Channels {
			relation("SENDS_TO", "component", a.Name+"/"+a.Services[c.From].Name, "component", a.Name+"/"+a.Services[c.To].Name)
		}
	}
	var lists [][]byte
	for len(all) > 0 {
		n := min(size, len(all))
		list := make([]object, n)
		for i, payload := range all[:n] {
			list[i] = object{
				"connector_edf_id": id("connector", "generator"), "connector_type": "generator", "event_type": "upsert", "timestamp": w.Options.Start.Unix(), "payload": payload,
			}
		}
		text, err := json.Marshal(list)
		if err != nil {
			return nil, err
		}
		lists, all = append(lists, text), all[n:]
	}
	return lists, nil
}

// edf is the id that the metadata manager derives from a name.
func edf(kind, name string) string {
	return uuid.NewMD5(uuid.NameSpaceURL, []byte("urn:mdm:"+kind+":"+name)).String()
}
