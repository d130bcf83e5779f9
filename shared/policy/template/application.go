package template

// The published text, joined through the labels that every series of the application carries.
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

// scanned is SCA_score with the label names of tlum_host_info. The scanner knows hosts by name and address only.
const scanned = `label_replace(
  label_replace(SCA_score, "hostname", "$1", "agent_hostname", "(.+)"), "ip", "$1", "agent_ip", "(.+)"
)`

// scaScore's published text joins on address and name at once. Behind address translation the two addresses differ and
// the policy is never violated, and two controllers may each have a host of that name and address. Here the name counts
// within the controller, and the address decides only where several hosts share the name: as the topology matches them
// (shared/topology/METRICS.md). Several scores for one host: the lowest counts.
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

// deviceAvailable's published text looks ten minutes back for the series and compares no value: a device that is still
// listed as busy (0) or detached (-1) is not seen, and the alert ends by itself after ten minutes. Here the value
// counts for as long as it is bad, and a device that was listed on this host within a day and is not any more counts as
// detached. A host that never listed it gives no verdict: perhaps nothing there reports devices.
//
// least is for exporters that show a device as busy because of the application's own use: they want 0.
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

// lostTelemetry gives the seconds of silence. What the first proposal lacked: an application that was stopped and
// started, or whose component an update took away, has telemetry of before; only what was seen after since counts,
// which the caller sets to the time of the last start. One series per component, without a host: a component that
// moved is known on two hosts, and losing it is one violation. The history is read in steps of ten seconds, the
// silence itself from the samples. A timeout must be longer than the scrape interval.
//
// Telemetry as a whole may be away, and then nobody knows who is lost. So the silence lasts up to when some host was
// heard of last; and once there was a moment at which none had been for as long as the gap, all have the timeout to be
// heard of again. Lost nodes are told apart in the same way (shared/application/displace.go).
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

// What hosts are heard of by, as in the topology (shared/topology/METRICS.md). The controller's own telemetry stands
// beside the store and tells nothing of the others.
const (
	hostInfo = `tlum_host_info{icos_agent_id!="self"}`
	uname    = `node_uname_info{icos_agent_id!="self"}`
)

// securityEvents counts what Tetragon saw. The name of ICOS's metric is not public: this is Tetragon's own, with the
// labels the page's variables speak of and those that a remediation by "secure" needs. A counter that appears with its
// first event has no increase, so that a series not seen in the hour before counts with its whole value; and increase
// extrapolates, hence the rounding.
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
