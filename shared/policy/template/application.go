package template

// The published text, with joins through the labels that every series of the application has.
var compssUnderAllocation = &Template{
	Name: CompssUnderAllocation, Published: true,
	Description: "The COMPSs tasks that wait would take longer than the threshold with the computing units at hand",
	Expr: `sum by ({{subject_label_list}}) (
  compss_avgTime_ratio{CoreSignature="{{compssTask}}", {{subject_label_selector}}}
  * compss_pendTasks_ratio{CoreSignature="{{compssTask}}", {{subject_label_selector}}}
)
/ sum by ({{subject_label_list}}) (compss_node_info{property="computing_units", {{subject_label_selector}}})
/ 1000
> {{thresholdTimeSeconds}}`,
	Variables: []Variable{
		{Name: "compssTask", Kind: Text, Description: "the signature of the COMPSs task"},
		{
			Name: "thresholdTimeSeconds", Kind: Number, Max: 1e9,
			Description: "the longest estimated time to finish, in seconds",
		},
	},
	Thresholds: map[string]float64{"warning": 200, "critical": 500},
}

// scanned is SCA_score with the label names of tlum_host_info, since the scanner knows hosts only by name and address.
const scanned = `label_replace(
  label_replace(SCA_score, "hostname", "$1", "agent_hostname", "(.+)"), "ip", "$1", "agent_ip", "(.+)"
)`

// scaScore differs from the published text, which joins on address and name together. Behind address translation the
// two addresses differ, so the policy is never violated; and two controllers may each have a host with the same name
// and address. Here the name must match within the controller, and the address decides only between several hosts of
// the same name, as in the topology (shared/topology/METRICS.md). If a host has several scores, the lowest counts.
var scaScore = &Template{
	Name:        SCAScore,
	Description: "The security score of the node is below the threshold",
	Expr: placed + onHost + `(
  min by (icos_host_id) (
    max by (icos_controller_id, hostname, icos_host_id) (tlum_host_info)
    * on (icos_controller_id, hostname) group_left ()
    (
      min by (icos_controller_id, hostname) (` + scanned + `)
      and on (icos_controller_id, hostname)
      count by (icos_controller_id, hostname) (
        max by (icos_controller_id, hostname, icos_host_id) (tlum_host_info)
      ) == 1
    )
  )
  or
  min by (icos_host_id) (
    max by (icos_controller_id, hostname, ip, icos_host_id) (tlum_host_info)
    * on (icos_controller_id, hostname, ip) group_left ()
    min by (icos_controller_id, hostname, ip) (` + scanned + `)
  )
) < {{threshold}}`,
	Variables: []Variable{{
		Name: "threshold", Kind: Number, Max: 100, Description: "the least SCA score of the node, 0 to 100",
	}},
}

// deviceAvailable differs from the published text, which looks for the series in the last ten minutes and compares no
// value: it misses a device that is still listed as busy (0) or detached (-1), and its alert ends by itself after ten
// minutes. Here the policy is violated for as long as the value is bad, and a device that was listed on this host
// within the last day but no longer is counts as detached. A host that never listed it gives no verdict: perhaps
// nothing there reports devices.
//
// least is for exporters that show a device as busy when the application itself uses it: set it to 0 there.
var deviceAvailable = &Template{
	Name:        DeviceAvailable,
	Description: "The device is not available on the node: in use by others, detached or gone",
	Expr: placed + onHost + `(
  max by (icos_host_id) (node_mounted{resource_path=~"{{device}}"})
  or
  max by (icos_host_id) (max_over_time(node_mounted{resource_path=~"{{device}}"}[1d])) * 0 - 1
) < {{least}}`,
	Variables: []Variable{
		{Name: "device", Kind: Pattern, Description: "the resource path of the device, a regular expression"},
		{
			Name: "least", Kind: Number, Default: 1.0, Min: -1, Max: 1,
			Description: "the state from which the device counts as available: 1 available, 0 busy, -1 detached",
		},
	},
}

// lostTelemetry gives the seconds of silence. An application that was stopped and started, or that lost a component by
// an update, has telemetry from before. So only what was seen after since counts, which the caller sets to the time of
// the last start. There is one series per component, without a host: a component that moved is known on two hosts, but
// losing it is one violation. The history is read in steps of ten seconds, the silence itself from the samples. A
// timeout must be longer than the scrape interval.
//
// If all telemetry is missing, nobody knows which component is lost. So the silence only counts up to the last sample
// of any host. And after a period in which no host sent anything for as long as the gap, all components have the whole
// timeout to report again. Lost nodes are recognized in the same way (shared/application/displace.go).
var lostTelemetry = &Template{
	Name:        LostTelemetry,
	Description: "The component has sent no telemetry for longer than the timeout",
	Expr: `(
  scalar(max(timestamp(` + hostInfo + `) or timestamp(` + uname + `))) - max by ({{subject_label_list}}) (
    max_over_time(timestamp(tlum_workload_info{{{subject_label_selector}}})[{{lookback}}:10s])
  ) > {{timeout}}
  unless on ({{subject_label_list}})
  max by ({{subject_label_list}}) (last_over_time(tlum_workload_info{{{subject_label_selector}}}[{{timeout}}]))
  unless on ()
  max_over_time(
    absent(last_over_time(` + hostInfo + `[{{gap}}]) or last_over_time(` + uname + `[{{gap}}]))[{{timeout}}:10s]
  )
) < time() - {{since}}`,
	Variables: []Variable{
		{Name: "timeout", Kind: Duration, Default: "5m", Min: 1, Max: 12 * 3600, Description: "the longest silence"},
		{
			Name: "lookback", Kind: Duration, Default: "6h", Min: 60, Max: 24 * 3600,
			Description: "how long a lost component is remembered; longer than the timeout",
		},
		{
			Name: Gap, Kind: Duration, Default: "1m", Min: 1, Max: 12 * 3600,
			Description: "from when on telemetry as a whole is away: nobody was heard of for so long; where it is not given, " +
				"not below STALE_AFTER, but never above the timeout",
		},
		{
			Name: Since, Kind: Number, Default: 0.0, Max: 1e11,
			Description: "when the application was started, in seconds since 1970",
		},
	},
}

// The metrics that show that a host is alive, as in the topology (shared/topology/METRICS.md). The controller's own
// telemetry does not count: it is next to the store and says nothing about the others.
const (
	hostInfo = `tlum_host_info{icos_agent_id!="self"}`
	uname    = `node_uname_info{icos_agent_id!="self"}`
)

// securityEvents counts the events that Tetragon saw. The name of ICOS's metric is not public, so this is Tetragon's
// own, with the labels in the page's variables and those that the remediation "secure" needs. A counter that appears
// with its first event has no increase, so a series that did not exist in the hour before counts with its whole value.
// increase extrapolates, hence the rounding.
var securityEvents = &Template{
	Name:        SecurityEvents,
	Description: "Tetragon reported more security events in five minutes than allowed",
	Expr: `sum by (
  {{subject_label_list}}, ` + hostLabels + `, k8s_container_name, k8s_namespace_name, k8s_node_name, k8s_pod_name,
  k8s_pod_uid, command
) (
  (
    ` + tetragon + `
    unless
    last_over_time(` + tetragon + `[1h] offset 5m)
  )
  or
  round(increase(` + tetragon + `[5m]))
) > {{maxEvents}}`,
	Variables: []Variable{
		{
			Name: "maxEvents", Kind: Number, Default: 0.0, Max: 1e9,
			Description: "how many events of a container are no violation",
		},
		{Name: "severity", Kind: Pattern, Default: ".+", Description: "only events of this severity"},
		{Name: "eventName", Kind: Pattern, Default: ".+", Description: "only events of this name"},
	},
}

const tetragon = `tetragon_events_total{
      severity=~"{{severity}}", event_name=~"{{eventName}}", {{subject_label_selector}}
    }`
