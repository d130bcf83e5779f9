package telemetry_test

import (
	"fmt"
	"strings"
)

// kind is a kind of policy, with the fault that violates it, the effect of its remediation, and the repair. The fleet
// commands apply to the node where the component is.
type kind struct {
	name string

	// The policy in the descriptor: of the component, of the application as a whole, or implied by the component's
	// requirements. Without any of them, the kind creates a policy with the API: see byAPI.
	policy, overall, requires string

	docker   bool
	replicas int    // of the component, default 1
	requests string // of its container
	confined bool   // to one node
	twin     bool   // there is another component on the same nodes, which the policy is also about

	before  fleetCommand // so that the policy is not violated at first; usually empty
	violate fleetCommand
	heal    fleetCommand
	again   fleetCommand // violates it a second time, without an action

	template  string // of the policy; "" for its own expression
	threshold string // the named threshold that the violation exceeds
	ends      func(r *run)
	byAPI     func(r *run) any // the policy to create
	calls     bool             // it calls a URL instead of remedying
}

// fleetCommand is a command of the fleet about a node.
type fleetCommand map[string]string

// fromTemplate writes a policy from a template.
func fromTemplate(name, remediation string, more ...string) string {
	return fmt.Sprintf("{name: watched, fromTemplate: %s, remediation: %s, variables: {%s}}", name, remediation,
		strings.Join(more, ", "))
}

// usage writes a policy about the node as a whole.
func usage(threshold string, exclude bool) string {
	return fmt.Sprintf("{type: node-resource-usage, %s, exclude_app_resources: %t}", threshold, exclude)
}

// waiting writes a policy with its own expression: about the COMPSs tasks that wait, with named thresholds.
func waiting(condition, remediation string) string {
	return `{name: watched, remediation: ` + remediation + `, properties: {interval: 1s}, variables: {task: sort}, spec: {
        expr: 'sum by ({{subject_label_list}}) (
        compss_pendTasks_ratio{CoreSignature="{{task}}", {{subject_label_selector}}})',
        violatedIf: "` + condition + `", thresholds: {warning: 20, critical: 50}}}`
}

// cameraIs writes a policy with its own expression about the node: the state of its camera.
func cameraIs(condition, remediation string) string {
	return `{name: watched, type: custom, remediation: ` + remediation + `, spec: {violatedIf: "` + condition + `", expr: '
        max by ({{subject_label_list}}, icos_host_id) (tlum_workload_info{ {{subject_label_selector}} })
        * on (icos_host_id) group_left () max by (icos_host_id) (node_mounted{resource_path="` + camera + `"})'}}`
}

var (
	badScore  = fleetCommand{"sca": "5"}
	goodScore = fleetCommand{"sca": ""}
	busy      = fleetCommand{"cpu": "0.98"}
	idle      = fleetCommand{"cpu": ""}
	full      = fleetCommand{"mem": "0.95"}
	empty     = fleetCommand{"mem": ""}
)

// kinds are those of the policies page. The run compares the observed violations with the existing templates,
// remediations and comparisons, so that none is missing here.
var kinds = []kind{
	// The security of the node.
	{
		name: "security in its short form", policy: "security: medium",
		violate: badScore, heal: goodScore, template: "app-sca-score", ends: moved,
	},
	{
		name: "security in its long form, for the components it applies to", twin: true,
		overall: "{type: security, level: high, remediation: migrate, apply-to: [web, twin]}",
		violate: fleetCommand{"sca": "70"}, heal: goodScore, template: "app-sca-score", ends: moved,
	},
	{
		name: "a score that is only recorded", policy: "{type: security, threshold: 50, remediation: none}",
		violate: badScore, heal: goodScore, template: "app-sca-score", ends: recorded,
	},
	{
		name:   "a score, where there is nowhere else to go",
		policy: fromTemplate("app-sca-score", "redeploy", "threshold: 60"), confined: true,
		violate: badScore, heal: goodScore, template: "app-sca-score", ends: strained,
	},
	{
		name:     "a score that is acted upon once",
		policy:   "{type: security, level: medium, remediation: scale-up, properties: {oneoff: true, pendingInterval: 1s}}",
		violate:  badScore,
		heal:     goodScore,
		again:    badScore,
		template: "app-sca-score", ends: scaledTo(2),
	},

	// Usage of the node.
	{
		name: "the node's cpu", policy: usage("cpu_threshold_perc: 0.85", false),
		violate: busy, heal: idle, template: "app-host-cpu-usage-perc", ends: moved,
	},
	{
		name:     "the node's cpu without the application's share",
		policy:   usage("cpu_threshold_perc: 0.5", true),
		requests: "{cpu: 7, memory: 64Mi}", // of which it uses 2.8 cores: alone this is no violation
		violate:  fleetCommand{"cpu": "0.6"}, heal: idle, template: "app-host-cpu-usage-perc-excl", ends: moved,
	},
	{
		name: "the cpu of a Docker host without the application's share", docker: true,
		policy:  usage("cpu_threshold_perc: 0.5", true),
		violate: fleetCommand{"cpu": "0.8"}, heal: idle, template: "app-host-cpu-usage-perc-excl", ends: moved,
	},
	{
		name:    "the node's cpu by the template's older name",
		policy:  fromTemplate("app-host-cpu-usage", "reallocation", "maxCpu: 0.85"),
		violate: busy, heal: idle, template: "app-host-cpu-usage", ends: moved,
	},
	{
		name:    "the cpu of the host that an application is on",
		policy:  fromTemplate("cpu-usage-host", "redeploy", "maxCpuUsagePercent: 0.85"),
		violate: busy, heal: idle, template: "cpu-usage-host", ends: moved,
	},
	{
		name: "the node's memory", policy: usage("memory_threshold_perc: 0.9", false),
		violate: full, heal: empty, template: "app-host-memory-usage-perc", ends: moved,
	},
	{
		name: "the node's memory without the application's share", policy: usage("memory_threshold_perc: 0.5", true),
		requests: "{cpu: 100m, memory: 12Gi}", // of which it uses 7.2
		violate:  fleetCommand{"mem": "0.6"}, heal: empty, template: "app-host-memory-usage-perc-excl", ends: moved,
	},
	{
		name: "the node's free memory", policy: usage("memory_threshold: 4Gi", false),
		violate: full, heal: empty, template: "app-host-memory-avail-bytes", ends: moved,
	},
	{
		name: "the node's free memory without the application's share", policy: usage("memory_threshold: 4Gi", true),
		violate: full, heal: empty, template: "app-host-memory-avail-bytes-excl", ends: moved,
	},

	// Devices.
	{
		name: "a required device that is detached", requires: "devices: " + camera,
		violate: fleetCommand{"device:" + camera: "detached"}, heal: fleetCommand{"device:" + camera: ""},
		template: "device-available", ends: moved,
	},
	{
		name:    "a device that others use",
		policy:  fromTemplate("device-available", "redeploy", `device: "squat.ai/vid.*"`),
		violate: fleetCommand{"device:" + camera: "busy"}, heal: fleetCommand{"device:" + camera: ""},
		template: "device-available", ends: moved,
	},

	// Lost telemetry. The timeout tolerates failed scrapes, as on a busy machine: while Prometheus has no data from any
	// host, nobody counts as silent.
	{
		name: "a component of which nothing is heard", policy: "redeployOnLostTelemetry: 30s",
		violate: fleetCommand{"telemetry": "node"}, heal: fleetCommand{"telemetry": ""},
		template: "redeploy-on-lost-telemetry", ends: moved,
	},
	{
		name: "a Docker host of which nothing is heard", docker: true,
		policy:  "{type: redeployOnLostTelemetry, timeout: 30s}",
		violate: fleetCommand{"telemetry": "none"}, heal: fleetCommand{"telemetry": ""},
		template: "redeploy-on-lost-telemetry", ends: moved,
	},

	// COMPSs: three tasks of 80 s on one computing unit, on two after scaling.
	{
		name:    "COMPSs tasks that take too long",
		policy:  fromTemplate("compss-under-allocation", "scale-up", "compssTask: sort", "thresholdTimeSeconds: 120"),
		violate: fleetCommand{"compss:sort": "3@80"}, heal: fleetCommand{"compss:sort": ""},
		template: "compss-under-allocation", threshold: "warning", ends: scaledTo(2),
	},

	// Security events.
	{
		name: "security events that are secured against",
		policy: fromTemplate("app-security-events", "secure", "maxEvents: 2", `severity: "high|critical"`,
			"eventName: exec"),
		violate: fleetCommand{"event:exec": "3@critical"}, heal: fleetCommand{"event:exec": ""},
		template: "app-security-events", ends: secured,
	},
	{
		name: "security events that are fled from", policy: fromTemplate("app-security-events", "migrate"),
		violate: fleetCommand{"event:open": "1@low"}, heal: fleetCommand{"event:open": ""},
		template: "app-security-events", ends: moved,
	},

	// Custom expressions, with each comparison and each of the other remediations.
	{
		name: "an expression that scales out", policy: waiting(">= {{warning}}", "scale-out"),
		violate: fleetCommand{"compss:sort": "60"}, heal: fleetCommand{"compss:sort": ""}, threshold: "critical", ends: resized(1),
	},
	{
		name: "an expression that scales in", policy: waiting("<= 1", "scale-in"),
		requests: "{cpu: 3, memory: 3000Mi}", before: fleetCommand{"compss:sort": "9"},
		violate: fleetCommand{"compss:sort": "1"}, heal: fleetCommand{"compss:sort": "9"}, threshold: "warning", ends: resized(-1),
	},
	{
		name: "an expression that scales down", policy: waiting("< 3", "scale-down"), replicas: 2,
		before:  fleetCommand{"compss:sort": "9"},
		violate: fleetCommand{"compss:sort": "2"}, heal: fleetCommand{"compss:sort": "9"}, threshold: "warning", ends: scaledTo(1),
	},
	{
		name: "an expression that scales up", policy: waiting("> 40", "scale-up"),
		violate: fleetCommand{"compss:sort": "45"}, heal: fleetCommand{"compss:sort": ""}, threshold: "warning", ends: scaledTo(2),
	},
	{
		name: "an expression that patches", policy: cameraIs("== 0", "patch"),
		violate: fleetCommand{"device:" + camera: "busy"}, heal: fleetCommand{"device:" + camera: ""}, ends: remedied("patch"),
	},
	{
		name: "an expression that replaces", policy: cameraIs("!= 1", "replace"),
		violate: fleetCommand{"device:" + camera: "detached"}, heal: fleetCommand{"device:" + camera: ""}, ends: remedied("replace"),
	},

	// Policies that call a URL.
	{
		name: "an application, told with a token", calls: true, byAPI: aboutApplication("POST"),
		violate: badScore, heal: goodScore, template: "app-sca-score", ends: called("POST"),
	},
	{
		name: "any component of an application, told by PUT", calls: true, byAPI: aboutApplication("PUT"),
		violate: badScore, heal: goodScore, template: "app-sca-score", ends: called("PUT"),
	},
	{
		name: "a host, told in a query", calls: true, byAPI: aboutHost,
		violate: busy, heal: fleetCommand{"cpu": "0"}, template: "cpu-usage-host", ends: called("GET"),
	},
	{
		name: "whatever has the labels", calls: true, byAPI: aboutLabels,
		violate: busy, heal: idle, ends: called("DELETE"),
	},
}
