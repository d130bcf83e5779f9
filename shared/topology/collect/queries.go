package collect

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/topology"
)

// query is one question to telemetry. Its name, which warnings show, is the metric it needs.
type query struct {
	name       string
	expression string
	essential  bool
	// retain copies the keys that this query feeds from the topology before, after the query has failed.
	retain func(now, before *topology.Node)
}

// Names of the queries.
const (
	qOrch          = "tlum_orch_info"
	qAgent         = "tlum_ocm_agent_info"
	qRuntime       = "tlum_runtime_info"
	qHost          = "tlum_host_info"
	qUname         = "node_uname_info"
	qSeen          = "tlum_host_info (time of the newest sample)"
	qSilence       = "tlum_host_info (when nobody was heard of)"
	qVnet          = "tlum_vnet_info"
	qLabels        = "tlum_host_labels"
	qScore         = "SCA_score"
	qVulnerable    = "vulnerabilities"
	qCapacity      = "kube_node_status_capacity"
	qUnschedulable = "kube_node_spec_unschedulable"
	qMounted       = "node_mounted"
	qMaxFrequency  = "tlum_cpu_max_freq"
	qFrequency     = "tlum_cpu_freq"
	qCPUs          = "node_cpu_seconds_total (number of cpus)"
	qCPUUsage      = "node_cpu_seconds_total (usage)"
	qMemTotal      = "node_memory_MemTotal_bytes"
	qMemAvailable  = "node_memory_MemAvailable_bytes"
	qTemperature   = "node_thermal_zone_temp"
	qEnergy        = "scaph_host_energy_microjoules_total"
	qPower         = "scaph_host_energy_microjoules_total (rate)"
	qForecastCPU   = "intelligence_node_cpu_utilization_prediction"
	qForecastMem   = "intelligence_node_memory_utilization_prediction"
	qNetInfo       = "node_network_info"
	qNetUp         = "node_network_up"
	qNetAddress    = "node_network_address_info"
	qNetSpeed      = "node_network_speed_bytes"
	qPod           = "kube_pod_info"
	qPhase         = "kube_pod_status_phase"
	qContainer     = "kube_pod_container_info"
	qContainerCPU  = "container_cpu_utilization_ratio"
	qContainerMem  = "container_memory_working_set_bytes"
	qWorkload      = "tlum_workload_info"
	qLost          = "littoral_telemetry_lost_samples"
	qLate          = "littoral_telemetry_late_seconds"
	qDisordered    = "littoral_telemetry_disordered_samples"
	qSkew          = "tlum_clock_skew_seconds"
)

// Labels that name the owner of a series.
const (
	byCluster = label.Controller + ", " + label.Agent + ", " + label.Cluster
	byHost    = byCluster + ", " + label.Host + ", " + label.HostName
	byAgent   = label.Controller + ", agent_hostname, agent_ip" // of the security scanner
)

// orLast selects the metric's present series, and for an owner without any the last ones within the lookback. An owner
// with present series gets no old ones, which may say what was true before.
func orLast(selector, owner string, lookback time.Duration) string {
	return fmt.Sprintf("%s or (last_over_time(%s[%ds]) unless on (%s) %s)",
		selector, selector, seconds(lookback), owner, selector)
}

// perHostOrLast aggregates the metric to one value per host, from old series if the host has no present ones.
func perHostOrLast(aggregate, selector string, lookback time.Duration) string {
	return orOld(selector, lookback, func(series string) string { return perHost(aggregate, series) })
}

// cpusOrLast counts the cpus of each host, from old series if it has no present ones. Several series may exist for one
// cpu: after an exporter was restarted, new and former ones exist side by side for minutes, and among old series all of
// them do.
func cpusOrLast(idle string, lookback time.Duration) string {
	return orOld(idle, lookback, func(series string) string {
		return perHost("count", fmt.Sprintf("group by (%s, cpu) (%s)", byHost, series))
	})
}

// orOld applies of to the metric's present series, and falls back to those within the lookback.
func orOld(selector string, lookback time.Duration, of func(series string) string) string {
	return of(selector) + " or " + of(fmt.Sprintf("last_over_time(%s[%ds])", selector, seconds(lookback)))
}

// perHost aggregates the expression to one present value per host.
func perHost(aggregate, expression string) string {
	return fmt.Sprintf("%s by (%s) (%s)", aggregate, byHost, expression)
}

// newest is when each host was last heard of. A sub-query finds silent ones: it looks back in steps, and timestamp() at
// a step gives the time of the sample itself, so the step only matters when a series ended at once. It is short where it
// decides whether a host is lost, and long for the rest, since telemetry reads all hosts at each step.
func newest(staleAfter, lookback time.Duration) string {
	var past []string
	for _, steps := range []string{
		fmt.Sprintf("[%ds:15s]", seconds(min(staleAfter+time.Minute, lookback))), fmt.Sprintf("[%ds:60s]", seconds(lookback)),
	} {
		for _, metric := range []string{qHost, qUname} {
			past = append(past, "max_over_time(timestamp("+metric+")"+steps+")")
		}
	}
	return heard() + " or " + perHost("max", strings.Join(past[:2], " or ")) + " or " + perHost("max", strings.Join(past[2:], " or "))
}

// heard is when each host was last heard of, of those that were within Prometheus' own lookback.
func heard() string { return perHost("max", "timestamp("+qHost+") or timestamp("+qUname+")") }

// silence is when telemetry last had no nodes at all, within the lookback: the newest step at which no node had been
// heard of for staleAfter. The controller's own telemetry is stored locally and does not count.
func silence(staleAfter, lookback time.Duration) string {
	const recent = `last_over_time(%s{icos_agent_id!="` + self + `"}[%ds])`
	heard := fmt.Sprintf("group("+recent+" or "+recent+")", qHost, seconds(staleAfter), qUname, seconds(staleAfter))
	step := max(staleAfter/2, time.Second)
	return fmt.Sprintf("max_over_time((vector(time()) unless %s)[%ds:%ds])", heard, seconds(lookback), seconds(step))
}

func seconds(d time.Duration) int { return int(d.Seconds()) }

// rateWindow is how far irate looks for the two newest samples: enough for two scrapes a minute or two apart.
const rateWindow = "[5m]"

// ofMachines excludes the loopback and the virtual devices of containers.
const ofMachines = `device!~"lo|veth.*|cali.*|lxc.*"`

// onlyIdle has a series for each cpu of a host.
const (
	qCPUSeconds = "node_cpu_seconds_total"
	onlyIdle    = `mode="idle"`
)

// scope limits queries to the series of some nodes, by matchers of labels. What is empty limits nothing.
type scope struct {
	host    string // of what exporters on hosts tell
	node    string // of what a cluster tells of its nodes, and of pods with their node
	cluster string // of what it tells of pods otherwise
	scanned string // of what the security scanner tells
}

// of selects the series of a metric.
func of(metric string, matchers ...string) string {
	matchers = slices.DeleteFunc(matchers, func(m string) bool { return m == "" })
	if len(matchers) == 0 {
		return metric
	}
	return metric + "{" + strings.Join(matchers, ",") + "}"
}

// queries are all queries.
func queries(staleAfter, lookback time.Duration) []query {
	return slices.Concat(identifying(staleAfter, lookback), scanning(lookback, scope{}), describing(lookback, scope{}))
}

// identifying are the queries that say which clusters and nodes there are. They are always of all, since a series finds
// its node by what no other node is called.
func identifying(staleAfter, lookback time.Duration) []query {
	orLastOf := func(metric, owner string) string { return orLast(metric, owner, lookback) }
	return []query{
		{qOrch, orLastOf(qOrch, byCluster), true, nil},
		{qAgent, orLastOf(qAgent, "icos_controller_id, id"), true, nil},
		{qRuntime, orLastOf(qRuntime, byHost), true, nil},
		{qHost, orLastOf(qHost, byHost), true, nil},
		{qUname, orLastOf(qUname, byHost), true, nil},
		{qSeen, newest(staleAfter, lookback), true, nil},

		{qSilence, silence(staleAfter, lookback), false, nil},
		{qVnet, fmt.Sprintf(`group by (%s) (tlum_vnet_info{type="ClusterLink"})`, byCluster), false, nil},
	}
}

// identifyingSince are the identifying queries where what was so some time ago is stored: when those were heard of that are
// silent now, and when nobody was heard of before. To look back over all of that costs telemetry more than all else here.
func identifyingSince(ago, staleAfter, lookback time.Duration) []query {
	asked := identifying(staleAfter, lookback)
	for i := range asked {
		switch asked[i].name {
		case qSeen:
			asked[i].expression = heard()
		case qSilence:
			asked[i].expression = silence(staleAfter, min(lookback, ago+2*staleAfter))
		}
	}
	return asked
}

// scanning are the queries about what the security scanner found.
func scanning(lookback time.Duration, s scope) []query {
	return []query{
		{
			qScore, orLast(of(qScore, s.scanned), byAgent, lookback), false,
			func(n, was *topology.Node) { n.ScaScore = was.ScaScore },
		},
		{qVulnerable, orLast(of(qVulnerable, s.scanned), byAgent, lookback), false, retainVulnerabilities},
	}
}

// describing are the queries that say what nodes are like and how they are doing.
func describing(lookback time.Duration, s scope) []query {
	host := func(metric string) string { return of(metric, s.host) }
	interfaces := func(metric string) string { return of(metric, ofMachines, s.host) }
	inCluster := func(metric string) string { return of(metric, s.cluster) }
	idle := of(qCPUSeconds, onlyIdle, s.host)
	return []query{
		{qLabels, orLast(host(qLabels), byHost, lookback), false, func(n, was *topology.Node) { n.Labels = was.Labels }},
		{qCapacity, orLast(of(qCapacity, onlyCapacity, s.node), byCluster+", node, resource", lookback), false, retainCapacity},
		{qUnschedulable, orLast(of(qUnschedulable, s.node), byCluster+", node", lookback), false, retainSchedulable},
		{qMounted, orLast(host(qMounted), byHost, lookback), false, func(n, was *topology.Node) { n.Devices = was.Devices }},
		{qMaxFrequency, perHostOrLast("avg", host(qMaxFrequency), lookback), false, nil},
		{qCPUs, cpusOrLast(idle, lookback), false, retainCapacity},
		{qMemTotal, perHostOrLast("max", host(qMemTotal), lookback), false, retainMemory},

		{qCPUUsage, cpuUsage(idle), false, retainCPUUsage},
		{qMemAvailable, perHost("min", host(qMemAvailable)), false, retainMemoryUsage},
		{qFrequency, perHost("avg", host(qFrequency)), false, nil},
		{qTemperature, perHost("max", host(qTemperature)), false, nil},
		{qEnergy, perHost("sum", host(qEnergy)), false, nil},
		{qPower, perHost("sum", "irate("+host(qEnergy)+rateWindow+")"), false, retainPower},
		{qForecastCPU, perHost("max", host(qForecastCPU)), false, nil},
		{qForecastMem, perHost("max", host(qForecastMem)), false, nil},

		// What a silent node's clock was like says why it is silent.
		{qLost, perHost("max", host(qLost)), false, nil},
		{qLate, perHost("max", host(qLate)), false, nil},
		{qDisordered, perHost("max", host(qDisordered)), false, nil},
		{qSkew, perHost("max", fmt.Sprintf("last_over_time(%s[%ds])", host(qSkew), seconds(lookback))), false, nil},

		{qNetInfo, interfaces(qNetInfo), false, nil},
		{qNetUp, interfaces(qNetUp), false, nil},
		{qNetAddress, interfaces(qNetAddress), false, nil},
		{qNetSpeed, interfaces(qNetSpeed), false, nil},

		// The order matters: containers before what is read of them.
		{qContainer, inCluster(qContainer), false, retainContainers},
		{qContainerCPU, inCluster(qContainerCPU), false, retainReading(cpuOf)},
		{qContainerMem, inCluster(qContainerMem), false, retainReading(memoryOf)},
		{qPod, of(qPod, s.node), false, func(n, was *topology.Node) { n.Pod = was.Pod }},
		{qPhase, inCluster(qPhase) + " == 1", false, nil},
		{qWorkload, host(qWorkload), false, func(n, was *topology.Node) { n.Pod = was.Pod }},
	}
}

// cpuUsage is in percent. It takes irate, not rate: the last two samples, so that a spike shows at once however often
// is scraped.
func cpuUsage(idle string) string {
	return "100 * (1 - " + perHost("avg", "irate("+idle+rateWindow+")") + ")"
}

const onlyCapacity = `resource=~"cpu|memory"`

func retainVulnerabilities(n, was *topology.Node) { n.Vulnerabilities = was.Vulnerabilities }

func retainSchedulable(n, was *topology.Node) { n.Schedulable = was.Schedulable }

// retainCapacity prefers the former value even over one from another metric: the two need not agree to the byte.
func retainCapacity(n, was *topology.Node) {
	retain(&n.StaticMetrics.CPUCores, was.StaticMetrics.CPUCores)
	retain(&n.StaticMetrics.RAMMemory, was.StaticMetrics.RAMMemory)
}

// retainMemory keeps both values, since used memory is derived from the total.
func retainMemory(n, was *topology.Node) {
	retainCapacity(n, was)
	retainMemoryUsage(n, was)
}

func retainCPUUsage(n, was *topology.Node) {
	retain(&n.DynamicMetrics.CPUUsagePercent, was.DynamicMetrics.CPUUsagePercent)
}

func retainMemoryUsage(n, was *topology.Node) {
	retain(&n.DynamicMetrics.FreeRAM, was.DynamicMetrics.FreeRAM)
	retain(&n.DynamicMetrics.UsedRAM, was.DynamicMetrics.UsedRAM)
	retain(&n.DynamicMetrics.MemoryUsagePercent, was.DynamicMetrics.MemoryUsagePercent)
}

func retainPower(n, was *topology.Node) {
	retain(&n.DynamicMetrics.CPUPowerWatts, was.DynamicMetrics.CPUPowerWatts)
}

// retainContainers gives pods without containers those they had.
func retainContainers(n, was *topology.Node) {
	for id, p := range n.Pod {
		if old := was.Pod[id]; len(p.Container) == 0 {
			p.Container, p.NumberOfContainers = maps.Clone(old.Container), old.NumberOfContainers
			n.Pod[id] = p
		}
	}
}

// retainReading keeps a reading of containers that still exist. Otherwise the usage of our applications would look like
// that of others, and be subtracted in addition to what is reserved for them.
func retainReading(of func(*topology.Container) *topology.Measure) func(now, before *topology.Node) {
	return func(n, was *topology.Node) {
		for id, p := range n.Pod {
			for name, c := range p.Container {
				old := was.Pod[id].Container[name]
				retain(of(&c), *of(&old))
				p.Container[name] = c
			}
		}
	}
}

func cpuOf(c *topology.Container) *topology.Measure { return &c.CPUUsage }

func memoryOf(c *topology.Container) *topology.Measure { return &c.ContainerMemory }

func retain(now *topology.Measure, before topology.Measure) {
	if _, known := before.Get(); known {
		*now = before
	}
}
