package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/api"
)

// lostAfter is the silence from which a node is shown as lost if the server does not say: the server's own default.
const lostAfter = time.Minute

// nodeItem is one element of "get nodes -o json".
type nodeItem struct {
	Cluster      string   `json:"cluster"`
	Name         string   `json:"name"`
	Orchestrator string   `json:"orchestrator"`
	State        string   `json:"state"` // Ready, Drained, Lost
	Node         api.Node `json:"node"`  // its entry in the taxonomy
}

type placeFlags struct {
	Orchestrator string `enum:",${orchestrators}" default:"" placeholder:"TYPE" help:"Only of: ${orchestrators}."`
	Cluster      string `placeholder:"NAME" complete:"cluster" help:"Only that cluster."`
}

func (f *placeFlags) wants(cluster, orchestrator string) bool {
	return (f.Cluster == "" || f.Cluster == cluster) && (f.Orchestrator == "" || f.Orchestrator == orchestrator)
}

type getNodes struct {
	listFlags
	placeFlags
}

// Run lists nodes.
func (c *getNodes) Run(s *session) error {
	l := listing[nodeItem]{
		watch: c.Watch, what: "nodes", kind: "node",
		fetch:  func(ctx context.Context) ([]nodeItem, error) { return c.fetch(ctx, s) },
		key:    func(n nodeItem) string { return n.Cluster + "/" + n.Name },
		header: []string{"CLUSTER", "NODE", "TYPE", "STATE", "ARCH", "CORES", "CPU", "MEMORY", "SCA", "WATTS", "SEEN"},
		row: func(n nodeItem) []string {
			return []string{
				n.Cluster, n.Name, n.Orchestrator, n.State, or(n.Node.Static.Architecture), number(n.Node.Static.Cores),
				percent(n.Node.Dynamic.CPU), percent(n.Node.Dynamic.Memory), number(n.Node.ScaScore),
				watts(n.Node.Dynamic.Power), s.seen(&n.Node),
			}
		},
		steady: []int{2, 3, 4, 5, 8},
		gone:   func(n *nodeItem) { n.State = gone },
	}
	if s.wide() {
		l.header = append(l.header, "RAM", "ENGINE", "LOCATION", "PODS", "DEVICES", "LABELS")
		l.steady = append(l.steady, 11, 15, 16)
		narrow := l.row
		l.row = func(n nodeItem) []string {
			return append(narrow(n), bytesText(n.Node.Static.Memory), or(n.Node.Engine), or(n.Node.Location.Name),
				strconv.Itoa(len(n.Node.Pod)), or(devices(&n.Node)), or(pairs(n.Node.Labels)))
		}
	}
	return l.run(s)
}

func (c *getNodes) fetch(ctx context.Context, s *session) ([]nodeItem, error) {
	taxonomy, err := s.taxonomy(ctx)
	if err != nil {
		return nil, err
	}
	list := []nodeItem{}
	for _, p := range taxonomy.Places() {
		if orchestrator := strings.ToLower(p.In.Type); c.wants(p.Cluster, orchestrator) {
			list = append(list, nodeItem{p.Cluster, p.Node, orchestrator, s.stateOf(taxonomy, p.At), *p.At})
		}
	}
	return list, nil
}

// taxonomy reads the infrastructure and prints each warning of the server once, however often a command calls it.
func (s *session) taxonomy(ctx context.Context) (*api.Taxonomy, error) {
	t, err := s.client.Taxonomy(ctx)
	if err != nil {
		return nil, err
	}
	for _, w := range t.Warnings {
		if !slices.Contains(s.warned, w) {
			s.warned = append(s.warned, w)
			s.warn([]string{w})
		}
	}
	return t, nil
}

// warn prints the warnings of the server.
func (s *session) warn(warnings []string) {
	for _, w := range warnings {
		fmt.Fprintf(s.err, "littoral: warning: %s\n", printable(w))
	}
}

// derived tells what follows from a descriptor that it does not say.
func (s *session) derived(texts []string) {
	for _, d := range texts {
		fmt.Fprintf(s.err, "littoral: derived: %s\n", printable(d))
	}
}

func (s *session) stateOf(in *api.Taxonomy, n *api.Node) string {
	patience := lostAfter
	if seconds := in.Timestamp.StaleAfter; seconds != nil {
		patience = time.Duration(*seconds * float64(time.Second))
	}
	seen, known := n.SeenAt()
	switch {
	case n.Drained():
		return "Drained"
	case known && s.now().Sub(seen) > patience:
		return "Lost"
	}
	return "Ready"
}

func (s *session) seen(n *api.Node) string {
	at, known := n.SeenAt()
	if !known {
		return "?"
	}
	return s.age(at)
}

func devices(n *api.Node) string {
	states := make(map[string]string, len(n.Devices))
	for _, d := range n.Devices {
		states[d.Path] = d.Status
	}
	return pairs(states)
}

// clusterItem is one element of "get clusters -o json".
type clusterItem struct {
	Name         string      `json:"name"`
	Orchestrator string      `json:"orchestrator"`
	Nodes        int         `json:"nodes"`
	Ready        int         `json:"ready"`
	State        string      `json:"state"`   // Ready, Degraded when some node is not; Drained or Lost when none is
	Cluster      api.Cluster `json:"cluster"` // its entry in the taxonomy
}

type getClusters struct {
	listFlags
	placeFlags
}

// Run lists clusters.
func (c *getClusters) Run(s *session) error {
	l := listing[clusterItem]{
		watch: c.Watch, what: "clusters", kind: "cluster",
		fetch:  func(ctx context.Context) ([]clusterItem, error) { return c.fetch(ctx, s) },
		key:    func(i clusterItem) string { return i.Name },
		header: []string{"CLUSTER", "TYPE", "STATE", "READY", "ENGINE", "AGENT"},
		row: func(i clusterItem) []string {
			return []string{
				i.Name, i.Orchestrator, i.State, fmt.Sprintf("%d/%d", i.Ready, i.Nodes), or(i.Cluster.Engine),
				or(i.Cluster.AgentID),
			}
		},
		gone: func(i *clusterItem) { i.State = gone },
	}
	if s.wide() {
		l.header = append(l.header, "UUID", "CLUSTERLINK")
		narrow := l.row
		l.row = func(i clusterItem) []string {
			return append(narrow(i), or(i.Cluster.UUID), strconv.FormatBool(i.Cluster.ClusterLink))
		}
	}
	return l.run(s)
}

func (c *getClusters) fetch(ctx context.Context, s *session) ([]clusterItem, error) {
	taxonomy, err := s.taxonomy(ctx)
	if err != nil {
		return nil, err
	}
	list := []clusterItem{}
	for _, named := range taxonomy.Clusters() {
		i := clusterItem{
			Name: named.Name, Orchestrator: strings.ToLower(named.Type), Nodes: len(named.Node), State: "Ready",
			Cluster: *named.Cluster,
		}
		drained := 0
		for _, n := range named.Node {
			switch s.stateOf(taxonomy, &n) {
			case "Ready":
				i.Ready++
			case "Drained":
				drained++
			}
		}
		switch {
		case i.Ready == 0 && drained > 0 && drained == i.Nodes:
			i.State = "Drained"
		case i.Ready == 0:
			i.State = "Lost"
		case i.Ready < i.Nodes:
			i.State = "Degraded"
		}
		if c.wants(i.Name, i.Orchestrator) {
			list = append(list, i)
		}
	}
	return list, nil
}
