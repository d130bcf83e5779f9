package template

// hostLabels identify a node in the results, so that the next placement can exclude it.
const hostLabels = `icos_agent_id, icos_cluster_id, icos_host_id, icos_host_name`

// placed is where the subject runs now: 1 per component and host. ICOS joins tlum_workload_info directly, which gives
// one alert per pod and a new one after each restart. A pod that has ended is not counted.
const placed = `max by ({{subject_label_list}}, ` + hostLabels + `) (
  tlum_workload_info{status!~"exited|failed", {{subject_label_selector}}}
)`

// The readings of a host, one series per icos_host_id even if several targets report it, so that joins are one-to-one.
// The cpu is read as in the topology (the last two samples within five minutes), so placement and policies see the same
// value. ICOS uses rate over two minutes, which is empty as soon as one scrape per minute is missed.
const (
	hostCPU         = `(1 - avg by (icos_host_id) (irate(node_cpu_seconds_total{mode="idle"}[5m])))`
	hostCores       = `count by (icos_host_id) (count by (icos_host_id, cpu) (node_cpu_seconds_total{mode="idle"}))`
	memoryFreeBytes = `max by (icos_host_id) (node_memory_MemAvailable_bytes)`
	memoryBytes     = `max by (icos_host_id) (node_memory_MemTotal_bytes)`
	onHost          = ` * on (icos_host_id) group_left () `
)

// owned is the application's own share of the given metric on each host: all of its components, since the page excludes
// "the resources taken from the app". On Kubernetes the series of a container have only its pod's uid, on a Docker host
// the container's id; both are the id in tlum_workload_info, which has the host.
//
// Without such series there is no verdict: an unknown share is not zero.
func owned(metric string) string {
	return `sum by (icos_app_instance, icos_host_id) (
  max by (icos_app_instance, icos_host_id, id) (
    tlum_workload_info{icos_app_instance="{{appInstance}}", icos_app_name="{{appName}}"}
  )
  * on (id) group_left ()
  sum by (id) (
    label_replace(` + metric + `{k8s_pod_uid!=""}, "id", "$1", "k8s_pod_uid", "(.+)")
    or
    label_replace(` + metric + `{container_id!="", k8s_pod_uid=""}, "id", "$1", "container_id", "(.+)")
  )
)`
}

// byOwner joins the result of owned with that of placed.
const byOwner = ` on (icos_app_instance, icos_host_id) group_left () `

func share(what string, aliases ...string) Variable {
	return Variable{
		Name: "threshold", Aliases: aliases, Kind: Number, Min: 0, Max: 1,
		Description: "the share of the " + what + " that may be in use, 0 to 1",
	}
}

// The text that was proposed for this name averaged without joining one series per host; the older name
// app-host-cpu-usage calls the variable maxCpu.
var cpuUsage = &Template{
	Name: CPUUsage, Aliases: []string{"app-host-cpu-usage"},
	Description: "The node's cpu is used beyond the threshold",
	Expr:        placed + onHost + hostCPU + ` > {{threshold}}`,
	Variables:   []Variable{share("node's cpu", "maxCpu")},
}

// container_cpu_utilization_ratio counts cores and is not a ratio: it is divided by the cores of the host.
var cpuUsageExcl = &Template{
	Name:        CPUUsageExcl,
	Description: "The node's cpu is used beyond the threshold by others than the application",
	Expr: placed + onHost + hostCPU + ` -` + byOwner + owned("container_cpu_utilization_ratio") +
		` / on (icos_host_id) group_left () ` + hostCores + ` > {{threshold}}`,
	Variables: []Variable{share("node's cpu", "maxCpu")},
}

// cpuUsageHost has the published text for a policy about a host, because a host's series have the subject's labels. An
// application's series do not, so for an application that text could never be violated; there the usage of its node is
// joined instead. The variable is called a percentage but is a ratio.
var cpuUsageHost = &Template{
	Name: CPUUsageHost, Published: true,
	Description: "The host's cpu is used beyond the threshold",
	Expr:        placed + onHost + hostCPU + ` > {{maxCpuUsagePercent}}`,
	HostExpr: `avg by (icos_host_name, {{subject_label_list}}) (
  1 - rate(node_cpu_seconds_total{mode="idle", {{subject_label_selector}}}[2m])
) > {{maxCpuUsagePercent}}`,
	Variables: []Variable{{
		Name: "maxCpuUsagePercent", Aliases: []string{"maxCpu", "threshold"}, Kind: Number, Min: 0, Max: 1,
		Description: "the share of the host's cpu that may be in use, 0 to 1",
	}},
}

var memoryUsage = &Template{
	Name:        MemoryUsage,
	Description: "The node's memory is used beyond the threshold",
	Expr:        placed + onHost + `(1 - ` + memoryFreeBytes + ` / ` + memoryBytes + `) > {{threshold}}`,
	Variables:   []Variable{share("node's memory", "maxMemory")},
}

var memoryUsageExcl = &Template{
	Name:        MemoryUsageExcl,
	Description: "The node's memory is used beyond the threshold by others than the application",
	Expr: placed + onHost + `(1 - ` + memoryFreeBytes + ` / ` + memoryBytes + `) -` + byOwner +
		owned("container_memory_working_set_bytes") + ` / on (icos_host_id) group_left () ` + memoryBytes +
		` > {{threshold}}`,
	Variables: []Variable{share("node's memory", "maxMemory")},
}

func leastBytes() Variable {
	return Variable{
		Name: "threshold", Aliases: []string{"minMemory"}, Kind: Number, Min: 0, Max: 1 << 60,
		Description: "the bytes of the node's memory that must be free",
	}
}

var memoryAvailable = &Template{
	Name:        MemoryAvailable,
	Description: "The node has less memory free than the threshold",
	Expr:        placed + onHost + memoryFreeBytes + ` < {{threshold}}`,
	Variables:   []Variable{leastBytes()},
}

var memoryAvailableExcl = &Template{
	Name:        MemoryAvailableExcl,
	Description: "The node would have less memory free than the threshold, were the application not there",
	Expr: placed + onHost + memoryFreeBytes + ` +` + byOwner + owned("container_memory_working_set_bytes") +
		` < {{threshold}}`,
	Variables: []Variable{leastBytes()},
}
