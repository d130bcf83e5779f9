package collect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/telemetry"
	"github.com/littoral-project/littoral/shared/topology"
)

// self is the agent id of the controller's own telemetry, whose host is no place for applications.
const self = "self"

// builder makes a taxonomy from answers. Its steps must run in this order: clusters, hosts, then what belongs to them.
type builder struct {
	now        time.Time
	staleAfter time.Duration
	answers    map[string]telemetry.Answer

	seen     []telemetry.Sample // when each host was last heard of
	clusters []*cluster         // by key
	hosts    []*host
	leftOut  bool // a former installation of a machine, see leaveOutFormer
	warnings []string
	doubts   map[string]int // sentence -> how often

	former    map[[5]string]bool // see findFormer
	clusterBy index[cluster]     // key; uuid and managed name; uuid and agent, uuid alone, agent alone
	hostBy    index[host]        // see hostOf
	nodeBy    index[host]        // cluster or agent, and node name
}

// index finds things by up to three labels. A key shared by several things finds none.
type index[T any] map[[3]string]*T

func (x index[T]) put(v *T, kind, a, b string) {
	key := [3]string{kind, a, b}
	if other, taken := x[key]; taken && other != v {
		v = nil
	}
	x[key] = v
}

func (x index[T]) get(kind, a, b string) *T { return x[[3]string{kind, a, b}] }

// cluster is a cluster in the making.
type cluster struct {
	key, uuid, agent, agentHost string
	topology.Cluster
}

// host is a node in the making, with the labels by which its series are found.
type host struct {
	in                 *cluster
	id, name           string // icos_host_id, icos_host_name
	controller, ip     string
	hostname, nodeName string
	of                 string // its icos_cluster_id, which need not be that of the cluster it is in now
	seen               topology.Measure
	topology.Node
}

func newBuilder(now time.Time, staleAfter time.Duration, answers map[string]telemetry.Answer) *builder {
	return &builder{
		now: now, staleAfter: staleAfter, answers: answers,
		doubts: map[string]int{}, former: map[[5]string]bool{},
		clusterBy: index[cluster]{}, hostBy: index[host]{}, nodeBy: index[host]{},
	}
}

func (b *builder) warn(format string, args ...any) {
	b.warnings = append(b.warnings, clean(fmt.Sprintf(format, args...)))
}

// doubt adds a warning that may apply to thousands of things; it is reported once, with their number.
func (b *builder) doubt(sentence string) { b.doubts[sentence]++ }

func (b *builder) build() *topology.Taxonomy {
	b.identify()
	b.addScores()
	b.describe()
	return b.taxonomy()
}

// identify makes the clusters and hosts.
func (b *builder) identify() {
	b.seen = b.samples(qSeen)
	b.findFormer()
	b.makeClusters()
	b.makeHosts()
}

// describe adds what hosts are like.
func (b *builder) describe() {
	b.addFacts()
	b.addReadings()
	b.addNetwork()
	b.addPods()
}

// taxonomy is what was made.
func (b *builder) taxonomy() *topology.Taxonomy {
	t := &topology.Taxonomy{Cluster: b.assemble()}
	b.addTimestamp(t)
	if len(b.clusters) == 0 {
		b.warn("telemetry answers, but no agent has reported to it")
	}
	t.Warnings = b.sortedWarnings()
	return t
}

// announcedChanges lists the warnings.
func (b *builder) sortedWarnings() []string {
	all := slices.Clone(b.warnings)
	for sentence, times := range b.doubts {
		all = append(all, clean(fmt.Sprintf("%s (%d times)", sentence, times)))
	}
	slices.Sort(all)
	return all
}

// samples returns the samples of a query in a fixed order, with clean labels, without those about the controller
// itself.
func (b *builder) samples(name string) []telemetry.Sample {
	type keyed struct {
		telemetry.Sample
		identity string
	}
	all := make([]keyed, 0, len(b.answers[name].Samples))
	var labels []string
	var text []byte
	for _, s := range b.answers[name].Samples {
		// The scanner runs beside the controller but reports on other hosts.
		if s.Labels[label.Agent] == self && s.Labels["agent_hostname"] == "" {
			continue
		}
		labels = labels[:0]
		for key, value := range s.Labels {
			if cleaned := clean(value); cleaned != value {
				s.Labels[key] = cleaned
			}
			labels = append(labels, key)
		}
		slices.Sort(labels)
		text = identity(text[:0], labels, s)
		all = append(all, keyed{s, string(text)})
	}
	slices.SortFunc(all, func(a, b keyed) int { return cmp.Compare(a.identity, b.identity) })
	ordered := make([]telemetry.Sample, 0, len(all))
	for i, s := range all {
		if i == 0 || s.identity != all[i-1].identity {
			ordered = append(ordered, s.Sample)
		}
	}
	return ordered
}

// identity appends a text that is equal for equal samples, given their labels in order.
func identity(text []byte, labels []string, s telemetry.Sample) []byte {
	for _, label := range labels {
		text = append(append(text, label...), '=')
		text = append(append(text, s.Labels[label]...), '\n') // which clean has removed from values
	}
	return strconv.AppendFloat(text, s.Value, 'g', -1, 64)
}

// clean removes control characters, which Postgres refuses, and limits the length.
func clean(s string) string {
	const most = 512
	plain := true
	for i := range len(s) {
		plain = plain && s[i] >= ' ' && s[i] < 0x7f
	}
	if !plain && strings.ContainsFunc(s, unicode.IsControl) {
		s = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return -1
			}
			return r
		}, s)
	}
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}

func (b *builder) makeClusters() {
	names := map[[2]string]string{} // controller, agent id -> name of the managed cluster
	for _, s := range b.samples(qAgent) {
		names[[2]string{s.Labels[label.Controller], s.Labels["id"]}] = s.Labels["name"]
	}
	for _, s := range b.agents() {
		l := s.Labels
		key := cmp.Or(l["agent_name"], l["agent_id"], l[label.Agent])
		uuid, agent := l[label.Cluster], cmp.Or(l[label.Agent], l["agent_id"])
		managed := names[[2]string{l[label.Controller], l["agent_id"]}]
		kind := strings.ToLower(l["type"])
		_, known := kinds.Of(kind)
		switch {
		case key == "":
			b.doubt("an agent without a name was left out")
			continue
		case !known:
			b.doubt("an agent was left out that is of none of " + strings.Join(kinds.Names(), ", "))
			continue
		case b.clusterBy.get("key", key, "") != nil:
			continue // there may be one series per host, and some from before the site was set up anew
		case uuid != "" && managed != "" && b.clusterBy.get("managed", uuid, managed) != nil:
			continue // from before its agent was registered again under another name
		case uuid != "" && b.clusterBy.get("both", uuid, agent) != nil:
			continue // its agent is being renamed; for minutes telemetry has both names
		}
		c := &cluster{key: key, uuid: uuid, agent: agent, agentHost: l[label.Host]}
		c.Cluster = topology.Cluster{
			Type: kind, UUID: c.uuid, AgentID: c.agent, Node: map[string]topology.Node{},
			Name: cmp.Or(managed, key),
		}
		b.clusterBy.put(c, "key", key, "")
		b.clusterBy.put(c, "managed", c.uuid, managed)
		b.addCluster(c)
	}
	slices.SortFunc(b.clusters, func(a, b *cluster) int { return cmp.Compare(a.key, b.key) })
	for _, s := range b.samples(qVnet) {
		if c := b.clusterOf(s.Labels); c != nil {
			c.ClusterLink = true
		}
	}
}

// addCluster makes a cluster one that series find.
func (b *builder) addCluster(c *cluster) {
	b.clusters = append(b.clusters, c)
	b.clusterBy.put(c, "both", c.uuid, c.agent)
	b.clusterBy.put(c, "uuid", c.uuid, "")
	b.clusterBy.put(c, "agent", c.agent, "")
}

// agents returns the series that agents report about themselves, those with a live host first. A site that was set up
// anew keeps its agent's name or its own, and telemetry still has the former series. Two live sites of one name keep
// their order, so that the topology does not alternate.
func (b *builder) agents() []telemetry.Sample {
	type site struct{ cluster, agent string }
	siteOf := func(l map[string]string) site { return site{l[label.Cluster], l[label.Agent]} }
	live := map[site]bool{}
	for _, s := range b.seen {
		if b.live(s) {
			live[siteOf(s.Labels)] = true
		}
	}
	var first, then []telemetry.Sample
	for _, s := range b.samples(qOrch) {
		if live[siteOf(s.Labels)] {
			first = append(first, s)
		} else {
			then = append(then, s)
		}
	}
	return append(first, then...)
}

// live reports whether the host of a sample of b.seen was heard of recently.
func (b *builder) live(s telemetry.Sample) bool {
	n := topology.Node{LastSeen: topology.Known(s.Value)}
	return !n.Lost(b.now, b.staleAfter)
}

// findFormer records former names of machines: names whose series have ended while the machine reports under another
// name. Telemetry still has those series, which say nothing about the machine as it is now.
func (b *builder) findFormer() {
	newest := map[[2]string]float64{}
	machine := func(l map[string]string) [2]string { return [2]string{l[label.Cluster], l[label.Host]} }
	for _, s := range b.seen {
		newest[machine(s.Labels)] = max(s.Value, newest[machine(s.Labels)])
	}
	for _, s := range b.seen {
		b.former[owner(s.Labels)] = s.Labels[label.Host] != "" && !b.live(s) && s.Value < newest[machine(s.Labels)]
	}
}

// owner is the host that the labels of a series name.
func owner(l map[string]string) [5]string {
	return [5]string{l[label.Controller], l[label.Agent], l[label.Cluster], l[label.Host], l[label.HostName]}
}

// clusterOf finds the cluster of a series: by cluster and agent, else by the one of the two that identifies a cluster.
func (b *builder) clusterOf(l map[string]string) *cluster {
	uuid, agent := l[label.Cluster], l[label.Agent]
	c := b.clusterBy.get("both", uuid, agent)
	if c == nil && uuid != "" {
		c = b.clusterBy.get("uuid", uuid, "")
	}
	if c == nil && agent != "" {
		c = b.clusterBy.get("agent", agent, "")
	}
	return c
}

func (b *builder) makeHosts() {
	for _, s := range b.samples(qHost) {
		h := b.hostFor(s.Labels)
		if h == nil {
			continue
		}
		l := s.Labels
		h.hostname, h.ip = l["hostname"], l["ip"]
		h.StaticMetrics.CPUArchitecture = l["arch"]
		h.Location.Latitude, h.Location.Longitude = degrees(l["latitude"]), degrees(l["longitude"])
	}
	for _, s := range b.samples(qUname) {
		if h := b.hostFor(s.Labels); h != nil {
			h.hostname = cmp.Or(h.hostname, s.Labels["nodename"])
			h.StaticMetrics.CPUArchitecture = cmp.Or(h.StaticMetrics.CPUArchitecture, s.Labels["machine"])
		}
	}
	for _, s := range b.samples(qRuntime) {
		if h := b.hostOf(s.Labels); h != nil {
			h.nodeName = cmp.Or(s.Labels["node_name"], h.nodeName)
			h.Engine = engine(s.Labels["type"])
		}
	}
	for _, s := range b.seen {
		if h := b.hostOf(s.Labels); h != nil && s.Value > h.seen.Or(0) {
			// A host whose clock is ahead was seen now, not in the future.
			h.seen = topology.Known(min(s.Value, float64(b.now.UnixMilli())/1000))
			h.Series = seriesOf(owner(s.Labels))
		}
	}
	for _, h := range b.hosts {
		h.LastSeen, h.UUID = h.seen, h.id
		h.Name = cmp.Or(h.nodeName, h.hostname, h.id, h.name)
		h.Identity = topology.Identity{Controller: h.controller, Cluster: h.of, HostName: h.name, Hostname: h.hostname, IP: h.ip}
	}
	b.leaveOutFormer()
	b.nameNodes()
}

// nameNodes makes hosts such as series of kube-state-metrics find.
func (b *builder) nameNodes() {
	for _, h := range b.hosts {
		b.nodeBy.put(h, "cluster", h.in.uuid, h.Name)
		b.nodeBy.put(h, "agent", h.in.agent, h.Name)
	}
}

// leaveOutFormer drops former installations of a machine: hosts that are lost while another with the same key was heard
// of later. Otherwise they would make series ambiguous that name a node only.
func (b *builder) leaveOutFormer() {
	slices.SortFunc(b.hosts, func(x, y *host) int {
		return cmp.Or(-cmp.Compare(x.seen.Or(0), y.seen.Or(0)), cmp.Compare(x.id, y.id), cmp.Compare(x.name, y.name))
	})
	type place struct {
		in  *cluster
		key string
	}
	taken := map[place]bool{}
	b.hosts = slices.DeleteFunc(b.hosts, func(h *host) bool {
		at := place{h.in, h.key()}
		former := taken[at] && h.Lost(b.now, b.staleAfter)
		taken[at], b.leftOut = true, b.leftOut || former
		return former
	})
}

// hostFor finds or makes the host of a series; nil if it has none.
func (b *builder) hostFor(l map[string]string) *host {
	if h := b.hostOf(l); h != nil || b.former[owner(l)] {
		return h
	}
	c := b.clusterOf(l)
	if c == nil {
		b.doubt("a host was left out whose agent is not known")
		return nil
	}
	if l[label.Host] == "" && l[label.HostName] == "" {
		b.doubt("a host was left out that has neither id nor name")
		return nil
	}
	h := &host{in: c, id: l[label.Host], name: l[label.HostName], controller: l[label.Controller], of: l[label.Cluster]}
	h.Series = seriesOf(owner(l))
	b.addHost(h)
	return h
}

// addHost makes a host one that series find.
func (b *builder) addHost(h *host) {
	b.hosts = append(b.hosts, h)
	b.hostBy.put(h, "both", h.of, h.id)
	b.hostBy.put(h, "id", h.id, "")
	b.hostBy.put(h, "name", h.of, h.name)
}

// hostOf finds the host of a series: by machine id within the cluster (cloned machines share the id across clusters),
// else by the id alone, or, only without an id, by cluster and host name. A series under a former name of a machine
// belongs to no host.
func (b *builder) hostOf(l map[string]string) *host {
	cluster, id, name := l[label.Cluster], l[label.Host], l[label.HostName]
	switch {
	case b.former[owner(l)]:
		return nil
	case id != "" && cluster != "":
		return b.hostBy.get("both", cluster, id)
	case id != "":
		return b.hostBy.get("id", id, "")
	case name != "":
		return b.hostBy.get("name", cluster, name)
	}
	return nil
}

// nodeOf finds the host of a series of kube-state-metrics, whose host labels are those of the exporter: by node name
// within the cluster, else within the agent.
func (b *builder) nodeOf(l map[string]string) *host {
	if h := b.nodeBy.get("cluster", l[label.Cluster], l["node"]); h != nil {
		return h
	}
	return b.nodeBy.get("agent", l[label.Agent], l["node"])
}

func engine(runtime string) string {
	switch strings.ToLower(runtime) {
	case "kubernetes":
		return topology.Kubernetes
	case "docker":
		return topology.Docker
	}
	return topology.EngineUnknown
}

func degrees(text string) topology.Measure {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < -180 || v > 180 {
		return topology.Measure{}
	}
	return topology.Known(v)
}

// assemble gives each host its key. Of several hosts with one name, the one seen last gets the name (Complete corrects
// that if another live one had it before); the others are told apart by their ids.
func (b *builder) assemble() map[string]topology.Cluster {
	for _, h := range b.hosts {
		key := h.key()
		if _, taken := h.in.Node[key]; taken {
			b.doubt("two live hosts of one cluster have the same name; the second is listed by its identifier")
			key = cmp.Or(h.id, h.name)
		}
		h.in.Node[key] = h.Node
	}
	clusters := make(map[string]topology.Cluster, len(b.clusters))
	for _, c := range b.clusters {
		c.completeEngine()
		clusters[c.key] = c.Cluster
	}
	return clusters
}

// key is the host's name, or for the host of a Nuvla agent the agent's id, as ICOS lists it.
func (h *host) key() string {
	if strings.HasPrefix(h.in.key, "nuvlabox/") && h.in.agentHost == h.id && h.in.agent != "" {
		return h.in.agent
	}
	return h.Name
}

// completeEngine sets the engine of the cluster to that of its nodes, or that of its type when the nodes have none;
// Kubernetes when they differ, since only that spans nodes. Nodes without an engine get the cluster's.
func (c *cluster) completeEngine() {
	found := map[string]bool{}
	for _, n := range c.Node {
		found[n.Engine] = true
	}
	switch {
	case found[topology.Kubernetes]:
		c.Engine = topology.Kubernetes
	case found[topology.Docker]:
		c.Engine = topology.Docker
	default:
		c.Engine = topology.EngineOf(c.Type)
	}
	for key, n := range c.Node {
		if n.Engine == "" {
			n.Engine = c.Engine
			c.Node[key] = n
		}
	}
}

// addTimestamp dates the topology by its least recent node. Lost nodes do not count while others live: their own
// lastSeen tells, and one dead machine should not age the whole document.
func (b *builder) addTimestamp(t *topology.Taxonomy) {
	t.Timestamp.StaleAfter = topology.Known(b.staleAfter.Seconds())
	for _, s := range b.samples(qSilence) {
		t.Timestamp.SilentUntil = topology.Known(s.Value)
	}
	var live, all topology.Measure
	for _, p := range t.Places() {
		seen, known := p.At.LastSeen.Get()
		if !known {
			continue
		}
		all = topology.Known(min(seen, all.Or(seen)))
		if !p.At.Lost(b.now, b.staleAfter) {
			live = topology.Known(min(seen, live.Or(seen)))
		}
	}
	oldest, known := cmp.Or(live, all).Get()
	if !known {
		return
	}
	t.Timestamp.OldestTimestamp = topology.Known(oldest)
	t.Timestamp.TimeSinceOldest = topology.Known(float64(b.now.UnixMilli())/1000 - oldest)
}
