package render_test

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/policy/render"
	"github.com/littoral-project/littoral/shared/policy/template"
)

// The world of the rule tests: two hosts of one cluster and one of another controller. Ours is the watched application;
// theirs is another tenant's on the same host.
var world = strings.NewReplacer(
	"<h1>", `icos_controller_id="c",icos_agent_id="a",icos_cluster_id="k",icos_host_id="h1",icos_host_name="k:n1"`,
	"<h2>", `icos_controller_id="c",icos_agent_id="a",icos_cluster_id="k",icos_host_id="h2",icos_host_name="k:n2"`,
	"<x1>", `icos_controller_id="x",icos_agent_id="b",icos_cluster_id="l",icos_host_id="x1",icos_host_name="l:n1"`,
	"<c>", `icos_controller_id="c",icos_agent_id="a",icos_cluster_id="k"`,
	"<ours>", `icos_app_name="app",icos_app_instance="i1",icos_app_component="web"`,
	"<ours/db>", `icos_app_name="app",icos_app_instance="i1",icos_app_component="db"`,
	"<theirs>", `icos_app_name="app",icos_app_instance="i2",icos_app_component="web"`,
)

const (
	oursOnH1   = `tlum_workload_info{<h1>,<ours>,id="p1",name="ns__p1",status="running"} 1x240`
	theirsOnH2 = `tlum_workload_info{<h2>,<theirs>,id="p9",name="ns__p9",status="running"} 1x240`
	hostH2     = `tlum_host_info{<h2>,hostname="n2"} 1x240`
)

// during says that nothing fires between these times, and what fires otherwise.
func during(from, to time.Duration, besides map[time.Duration][]string) map[time.Duration][]string {
	all := map[time.Duration][]string{}
	for at := from; at <= to; at += 15 * time.Second {
		all[at] = nil
	}
	maps.Copy(all, besides)
	return all
}

// ruleTest loads series with fifteen seconds between samples, watches one policy, and says which alerts fire when.
type ruleTest struct {
	template  string
	variables registry.Variables
	component string // of the subject; web if empty
	host      bool   // the subject is host h1
	series    []string
	alerts    map[time.Duration][]string // alerts that fire at that time, as "component host value"

	staleAfter time.Duration // how long a host may be silent
}

var ruleTests = map[string]ruleTest{
	"cpu: a busy node is a violation, an idle one with others on it is not": {
		template: "app-host-cpu-usage-perc", variables: registry.Variables{"threshold": 0.8},
		series: []string{
			oursOnH1, theirsOnH2,
			`node_cpu_seconds_total{<h1>,cpu="0",mode="idle"} 0+15x20 300+1.5x60`,
			`node_cpu_seconds_total{<h1>,cpu="1",mode="idle"} 0+15x20 300+1.5x60`,
			`node_cpu_seconds_total{<h2>,cpu="0",mode="idle"} 0+0x80`,
		},
		alerts: map[time.Duration][]string{4 * time.Minute: nil, 10 * time.Minute: {"web h1 0.9"}},
	},
	"cpu: no node exporter, no verdict": {
		template: "app-host-cpu-usage-perc", variables: registry.Variables{"threshold": 0.8},
		series: []string{oursOnH1, `node_cpu_seconds_total{<h2>,cpu="0",mode="idle"} 0+0x80`},
		alerts: map[time.Duration][]string{10 * time.Minute: nil},
	},
	"cpu: two exporters of one host, and several pods of one component, are one alert": {
		template: "app-host-cpu-usage", variables: registry.Variables{"maxCpu": "0.8"}, component: "*",
		series: []string{
			oursOnH1, `tlum_workload_info{<h1>,<ours>,id="p2",name="ns__p2"} 1x80`,
			`tlum_workload_info{<h1>,<ours/db>,id="p3",name="ns__p3",status="pending"} 1x80`,
			`node_cpu_seconds_total{<h1>,cpu="0",mode="idle",instance="a"} 0+0x80`,
			`node_cpu_seconds_total{<h1>,cpu="0",mode="idle",instance="b"} 0+0x80`,
		},
		alerts: map[time.Duration][]string{10 * time.Minute: {"db h1 1", "web h1 1"}},
	},
	"cpu: a pod that has ended has no node to complain about": {
		template: "app-host-cpu-usage-perc", variables: registry.Variables{"threshold": 0.8},
		series: []string{
			`tlum_workload_info{<h1>,<ours>,id="p1",status="exited"} 1x80`,
			`node_cpu_seconds_total{<h1>,cpu="0",mode="idle"} 0+0x80`,
		},
		alerts: map[time.Duration][]string{10 * time.Minute: nil},
	},
	"cpu without the application: only the load of others counts": {
		template: "app-host-cpu-usage-perc-excl", variables: registry.Variables{"threshold": 0.5},
		series: []string{
			oursOnH1, `tlum_workload_info{<h1>,<ours/db>,id="p3"} 1x80`, `tlum_workload_info{<h1>,<theirs>,id="p9"} 1x80`,
			// Two cores, both busy: 1.2 of them by ours at first (two components), 0.4 from the tenth minute on.
			`node_cpu_seconds_total{<h1>,cpu="0",mode="idle"} 0x80`,
			`node_cpu_seconds_total{<h1>,cpu="1",mode="idle"} 0x80`,
			`container_cpu_utilization_ratio{<c>,k8s_pod_uid="p1",k8s_container_name="a"} 0.5x40 0.2x40`,
			`container_cpu_utilization_ratio{<c>,k8s_pod_uid="p1",k8s_container_name="b"} 0.3x40 0.1x40`,
			`container_cpu_utilization_ratio{<c>,k8s_pod_uid="p3",k8s_container_name="a"} 0.4x40 0.1x40`,
			`container_cpu_utilization_ratio{<c>,k8s_pod_uid="p9",k8s_container_name="a"} 0.8x80`,
		},
		alerts: map[time.Duration][]string{5 * time.Minute: nil, 15 * time.Minute: {"web h1 0.8"}},
	},
	"cpu without the application: unknown containers give no verdict": {
		template: "app-host-cpu-usage-perc-excl", variables: registry.Variables{"threshold": 0.5},
		series: []string{
			oursOnH1, `node_cpu_seconds_total{<h1>,cpu="0",mode="idle"} 0x80`,
			`tlum_workload_info{<h1>,<theirs>,id="p9"} 1x80`,
			`container_cpu_utilization_ratio{<c>,k8s_pod_uid="p9",k8s_container_name="a"} 0.8x80`,
		},
		alerts: map[time.Duration][]string{10 * time.Minute: nil},
	},
	"cpu without the application, on a Docker host": {
		template: "app-host-cpu-usage-perc-excl", variables: registry.Variables{"threshold": 0.5},
		series: []string{
			oursOnH1, `node_cpu_seconds_total{<h1>,cpu="0",mode="idle"} 0x80`,
			`container_cpu_utilization_ratio{<h1>,container_id="p1"} 0.75x40 0.25x40`,
		},
		alerts: map[time.Duration][]string{5 * time.Minute: nil, 15 * time.Minute: {"web h1 0.75"}},
	},
	"cpu of a host, for a policy about the host": {
		template: "cpu-usage-host", variables: registry.Variables{"maxCpuUsagePercent": 0.5}, host: true,
		series: []string{
			`node_cpu_seconds_total{<h1>,cpu="0",mode="idle"} 0+1.5x80`,
			`node_cpu_seconds_total{<h2>,cpu="0",mode="idle"} 0x80`,
		},
		alerts: map[time.Duration][]string{10 * time.Minute: {" h1 0.9"}},
	},
	"cpu of a host, for a policy about an application": {
		template: "cpu-usage-host", variables: registry.Variables{"maxCpuUsagePercent": 0.5},
		series: []string{
			oursOnH1, theirsOnH2, `node_cpu_seconds_total{<h1>,cpu="0",mode="idle"} 0+1.5x80`,
			`node_cpu_seconds_total{<h2>,cpu="0",mode="idle"} 0x80`,
		},
		alerts: map[time.Duration][]string{10 * time.Minute: {"web h1 0.9"}},
	},
	"memory: used beyond the share": {
		template: "app-host-memory-usage-perc", variables: registry.Variables{"threshold": 0.6},
		series: []string{
			oursOnH1, theirsOnH2, `node_memory_MemTotal_bytes{<h1>} 1000x80`,
			`node_memory_MemAvailable_bytes{<h1>} 500x20 250x20 500x20`, `node_memory_MemTotal_bytes{<h2>} 1000x80`,
			`node_memory_MemAvailable_bytes{<h2>} 10x80`,
		},
		alerts: map[time.Duration][]string{
			4 * time.Minute: nil, 7 * time.Minute: {"web h1 0.75"}, 12 * time.Minute: nil,
		},
	},
	"memory: without the total there is no share": {
		template: "app-host-memory-usage-perc", variables: registry.Variables{"threshold": 0.6},
		series: []string{oursOnH1, `node_memory_MemAvailable_bytes{<h1>} 1x80`, `node_memory_MemTotal_bytes{<h2>} 9x80`},
		alerts: map[time.Duration][]string{7 * time.Minute: nil},
	},
	"memory without the application: its own share is taken off": {
		template: "app-host-memory-usage-perc-excl", variables: registry.Variables{"threshold": 0.6},
		series: []string{
			oursOnH1, `tlum_workload_info{<h1>,<theirs>,id="p9"} 1x80`, `node_memory_MemTotal_bytes{<h1>} 1000x80`,
			`node_memory_MemAvailable_bytes{<h1>} 250x80`,
			`container_memory_working_set_bytes{<c>,k8s_pod_uid="p1",k8s_container_name="a"} 500x20 50x60`,
			`container_memory_working_set_bytes{<c>,k8s_pod_uid="p9",k8s_container_name="a"} 200x80`,
		},
		alerts: map[time.Duration][]string{4 * time.Minute: nil, 10 * time.Minute: {"web h1 0.7"}},
	},
	"memory without the application: unknown containers give no verdict": {
		template: "app-host-memory-usage-perc-excl", variables: registry.Variables{"threshold": 0.6},
		series: []string{
			oursOnH1, `node_memory_MemTotal_bytes{<h1>} 1000x80`, `node_memory_MemAvailable_bytes{<h1>} 0x80`,
		},
		alerts: map[time.Duration][]string{10 * time.Minute: nil},
	},
	"free memory: below the bytes wanted": {
		template: "app-host-memory-avail-bytes", variables: registry.Variables{"threshold": int64(200)},
		series: []string{
			oursOnH1, theirsOnH2, `node_memory_MemAvailable_bytes{<h1>} 500x20 100x60`,
			`node_memory_MemAvailable_bytes{<h2>} 1x80`,
		},
		alerts: map[time.Duration][]string{4 * time.Minute: nil, 10 * time.Minute: {"web h1 100"}},
	},
	"free memory: the metric is missing": {
		template: "app-host-memory-avail-bytes", variables: registry.Variables{"threshold": int64(200)},
		series: []string{oursOnH1, `node_memory_MemAvailable_bytes{<h2>} 1x80`},
		alerts: map[time.Duration][]string{10 * time.Minute: nil},
	},
	"free memory: what the application holds would be free without it": {
		template: "app-host-memory-avail-bytes-excl", variables: registry.Variables{"threshold": int64(200)},
		series: []string{
			oursOnH1, `tlum_workload_info{<h1>,<theirs>,id="p9"} 1x80`, `node_memory_MemAvailable_bytes{<h1>} 100x80`,
			`container_memory_working_set_bytes{<c>,k8s_pod_uid="p1",k8s_container_name="a"} 150x20 50x60`,
			`container_memory_working_set_bytes{<c>,k8s_pod_uid="p9",k8s_container_name="a"} 1000x80`,
		},
		alerts: map[time.Duration][]string{4 * time.Minute: nil, 10 * time.Minute: {"web h1 150"}},
	},
	"free memory without the application: unknown containers give no verdict": {
		template: "app-host-memory-avail-bytes-excl", variables: registry.Variables{"threshold": int64(200)},
		series: []string{oursOnH1, `node_memory_MemAvailable_bytes{<h1>} 1x80`},
		alerts: map[time.Duration][]string{10 * time.Minute: nil},
	},
	"security: the score drops, and rises again": {
		template: "app-sca-score", variables: registry.Variables{"threshold": int64(80)},
		series: []string{
			oursOnH1, theirsOnH2, `tlum_host_info{<h1>,hostname="n1",ip="192.0.2.1"} 1x80`,
			`tlum_host_info{<h2>,hostname="n2",ip="192.0.2.2"} 1x80`,
			`SCA_score{icos_controller_id="c",icos_agent_id="self",agent_hostname="n1",agent_ip="192.0.2.1"} 90x20 60x20 80x40`,
			`SCA_score{icos_controller_id="c",icos_agent_id="self",agent_hostname="n2",agent_ip="192.0.2.2"} 1x80`,
		},
		alerts: map[time.Duration][]string{
			4 * time.Minute: nil, 8 * time.Minute: {"web h1 60"}, 15 * time.Minute: nil,
		},
	},
	"security: behind address translation the name counts, and the lowest of several scores": {
		template: "app-sca-score", variables: registry.Variables{"threshold": int64(80)},
		series: []string{
			oursOnH1, `tlum_host_info{<h1>,hostname="n1",ip="10.0.0.1"} 1x80`,
			`SCA_score{icos_controller_id="c",agent_hostname="n1",agent_ip="192.0.2.1",policy="a"} 90x80`,
			`SCA_score{icos_controller_id="c",agent_hostname="n1",agent_ip="192.0.2.1",policy="b"} 70x80`,
		},
		alerts: map[time.Duration][]string{8 * time.Minute: {"web h1 70"}},
	},
	"security: another controller has a host of that name and address": {
		template: "app-sca-score", variables: registry.Variables{"threshold": int64(80)},
		series: []string{
			oursOnH1, `tlum_host_info{<h1>,hostname="n1",ip="192.0.2.1"} 1x80`,
			`tlum_host_info{<x1>,hostname="n1",ip="192.0.2.1"} 1x80`,
			`SCA_score{icos_controller_id="x",agent_hostname="n1",agent_ip="192.0.2.1"} 1x80`,
			`SCA_score{icos_controller_id="c",agent_hostname="n1",agent_ip="192.0.2.1"} 85x80`,
		},
		alerts: map[time.Duration][]string{8 * time.Minute: nil},
	},
	"security: two hosts share a name, and the address tells them apart": {
		template: "app-sca-score", variables: registry.Variables{"threshold": int64(80)},
		series: []string{
			oursOnH1, `tlum_host_info{<h1>,hostname="n",ip="192.0.2.1"} 1x80`,
			`tlum_host_info{<h2>,hostname="n",ip="192.0.2.2"} 1x80`,
			`SCA_score{icos_controller_id="c",agent_hostname="n",agent_ip="192.0.2.1"} 85x20 50x60`,
			`SCA_score{icos_controller_id="c",agent_hostname="n",agent_ip="192.0.2.2"} 20x80`,
		},
		alerts: map[time.Duration][]string{4 * time.Minute: nil, 10 * time.Minute: {"web h1 50"}},
	},
	"security: nobody scanned the node": {
		template: "app-sca-score", variables: registry.Variables{"threshold": int64(80)},
		series: []string{
			oursOnH1, `tlum_host_info{<h1>,hostname="n1",ip="192.0.2.1"} 1x80`,
			`SCA_score{icos_controller_id="c",agent_hostname="n2",agent_ip="192.0.2.1"} 1x80`,
		},
		alerts: map[time.Duration][]string{8 * time.Minute: nil},
	},
	"device: available, then in use, then detached, then back": {
		template: "device-available", variables: registry.Variables{"device": `squat\.ai/video`},
		series: []string{
			oursOnH1, theirsOnH2, `node_mounted{<h1>,device="video_0",resource_path="squat.ai/video"} 1x20 0x20 -1x20 1x20`,
			`node_mounted{<h1>,device="audio_0",resource_path="squat.ai/audio"} -1x80`,
			`node_mounted{<h2>,device="video_0",resource_path="squat.ai/video"} -1x80`,
		},
		alerts: map[time.Duration][]string{
			4 * time.Minute: nil, 7 * time.Minute: {"web h1 0"}, 13 * time.Minute: {"web h1 -1"}, 18 * time.Minute: nil,
		},
	},
	"device: it is gone from the list, and stays gone for hours": {
		template: "device-available", variables: registry.Variables{"device": "squat.ai/video"},
		series: []string{oursOnH1, `node_mounted{<h1>,device="video_0",resource_path="squat.ai/video"} 1x20 stale`},
		alerts: map[time.Duration][]string{
			4 * time.Minute: nil, 6 * time.Minute: {"web h1 -1"}, 59 * time.Minute: {"web h1 -1"},
		},
	},
	"device: another one of the kind is left": {
		template: "device-available", variables: registry.Variables{"device": "squat.ai/video"},
		series: []string{
			oursOnH1, `node_mounted{<h1>,device="video_0",resource_path="squat.ai/video"} -1x80`,
			`node_mounted{<h1>,device="video_1",resource_path="squat.ai/video"} 1x80`,
		},
		alerts: map[time.Duration][]string{10 * time.Minute: nil},
	},
	"device: in use may be said to be good enough": {
		template: "device-available", variables: registry.Variables{"device": "squat.ai/video", "least": int64(0)},
		series: []string{oursOnH1, `node_mounted{<h1>,device="video_0",resource_path="squat.ai/video"} 0x20 -1x40`},
		alerts: map[time.Duration][]string{4 * time.Minute: nil, 10 * time.Minute: {"web h1 -1"}},
	},
	"device: a host that never listed it gives no verdict": {
		template: "device-available", variables: registry.Variables{"device": "squat.ai/video"},
		series: []string{oursOnH1, `node_mounted{<h2>,device="video_0",resource_path="squat.ai/video"} 0x80`},
		alerts: map[time.Duration][]string{10 * time.Minute: nil},
	},
	"telemetry: silent for longer than the timeout, while another host is heard of": {
		template: "redeploy-on-lost-telemetry", variables: registry.Variables{"timeout": "2m"},
		series: []string{
			`tlum_workload_info{<h1>,<ours>,id="p1"} 1x20 stale`, hostH2, `tlum_workload_info{<h1>,<ours/db>,id="p2"} 1x240`,
		},
		alerts: map[time.Duration][]string{
			5 * time.Minute: nil, 6*time.Minute + 45*time.Second: nil, 8 * time.Minute: {"web  180"},
			59 * time.Minute: {"web  3240"},
		},
	},
	"telemetry: a host that only the node exporter tells of is heard of too": {
		template: "redeploy-on-lost-telemetry", variables: registry.Variables{"timeout": "2m"},
		series: []string{
			`tlum_workload_info{<h1>,<ours>,id="p1"} 1x20 stale`, `node_uname_info{<h2>,nodename="n2"} 1x240`,
		},
		alerts: map[time.Duration][]string{5 * time.Minute: nil, 8 * time.Minute: {"web  180"}},
	},
	"telemetry: all of it is away, and the controller tells of itself alone": {
		template: "redeploy-on-lost-telemetry", variables: registry.Variables{"timeout": "2m"},
		series: []string{
			`tlum_workload_info{<h1>,<ours>,id="p1"} 1x20`, `tlum_host_info{<h1>,hostname="n1"} 1x21`,
			`tlum_host_info{icos_agent_id="self",icos_host_id="h9"} 1x240`,
		},
		alerts: during(5*time.Minute, 30*time.Minute, nil),
	},
	"telemetry: nobody was heard of for longer than the timeout, and hosts come back one by one": {
		template: "redeploy-on-lost-telemetry", variables: registry.Variables{"timeout": "2m"}, component: "*",
		series: []string{
			`tlum_host_info{<h1>,hostname="n1"} 1x20 _x27 1x200`, `tlum_host_info{<h2>,hostname="n2"} 1x20 _x23 1x200`,
			`tlum_workload_info{<h1>,<ours>,id="p1"} 1x20 _x27 1x200`, `tlum_workload_info{<h1>,<ours/db>,id="p2"} 1x20`,
		},
		// The first reports again after eleven minutes, web a minute later, and db never.
		alerts: during(5*time.Minute, 12*time.Minute+45*time.Second, map[time.Duration][]string{
			14 * time.Minute: {"db  540"}, 40 * time.Minute: {"db  2100"},
		}),
	},
	"telemetry: nobody was heard of for longer than a short timeout": {
		template: "redeploy-on-lost-telemetry", variables: registry.Variables{"timeout": "30s"},
		series: []string{
			`tlum_host_info{<h1>,hostname="n1"} 1x20 _x3 1x200`, `tlum_host_info{<h2>,hostname="n2"} 1x20 _x2 1x200`,
			`tlum_workload_info{<h1>,<ours>,id="p1"} 1x20 _x3 1x200`,
		},
		alerts: during(5*time.Minute, 10*time.Minute, nil),
	},
	"telemetry: the one host that is left reports as rarely as hosts may": {
		template: "redeploy-on-lost-telemetry", staleAfter: 3 * time.Minute,
		series: []string{
			`tlum_workload_info{<h1>,<ours>,id="p1"} 1x20 stale`, `tlum_host_info{<h2>,hostname="n2"} ` + strings.Repeat("1 _x7 ", 30),
		},
		alerts: map[time.Duration][]string{
			10*time.Minute + 45*time.Second: nil, 13 * time.Minute: {"web  420"}, 50*time.Minute + 45*time.Second: {"web  2700"},
		},
	},
	"telemetry: a component that moved is not lost": {
		template: "redeploy-on-lost-telemetry", variables: registry.Variables{"timeout": "2m"},
		series: []string{
			`tlum_workload_info{<h1>,<ours>,id="p1"} 1x20 stale`, hostH2,
			`tlum_workload_info{<h2>,<ours>,id="p2"} _x24 1x200`,
		},
		alerts: map[time.Duration][]string{7 * time.Minute: nil, 20 * time.Minute: nil},
	},
	"telemetry: what was there before the last start is history": {
		template: "redeploy-on-lost-telemetry", variables: registry.Variables{"timeout": "2m", "since": int64(600)},
		series: []string{
			`tlum_workload_info{<h1>,<ours>,id="p1"} 1x20 stale _x99 1x20 stale`, hostH2,
		},
		alerts: map[time.Duration][]string{12 * time.Minute: nil, 31 * time.Minute: nil, 40 * time.Minute: {"web  285"}},
	},
	"telemetry: there never was any": {
		template: "redeploy-on-lost-telemetry", series: []string{hostH2},
		alerts: map[time.Duration][]string{20 * time.Minute: nil},
	},
	"COMPSs: more tasks wait than the computing units can do in time": {
		template:  "compss-under-allocation",
		variables: registry.Variables{"compssTask": "t.example", "thresholdTimeSeconds": int64(120)},
		series: []string{
			`compss_avgTime_ratio{<ours>,CoreSignature="t.example",instance="a"} 60000x80`,
			`compss_avgTime_ratio{<ours>,CoreSignature="t.other",instance="a"} 60000x80`,
			`compss_pendTasks_ratio{<ours>,CoreSignature="t.example",instance="a"} 4x20 10x60`,
			`compss_pendTasks_ratio{<ours>,CoreSignature="t.other",instance="a"} 1000x80`,
			`compss_node_info{<ours>,property="computing_units",instance="a"} 4x80`,
			`compss_node_info{<ours>,property="memory",instance="a"} 1x80`,
			`compss_avgTime_ratio{<theirs>,CoreSignature="t.example",instance="b"} 60000x80`,
			`compss_pendTasks_ratio{<theirs>,CoreSignature="t.example",instance="b"} 1000x80`,
			`compss_node_info{<theirs>,property="computing_units",instance="b"} 1x80`,
		},
		alerts: map[time.Duration][]string{4 * time.Minute: nil, 10 * time.Minute: {"web  150"}},
	},
	"COMPSs: no word of the computing units": {
		template:  "compss-under-allocation",
		variables: registry.Variables{"compssTask": "t", "thresholdTimeSeconds": int64(1)},
		series: []string{
			`compss_avgTime_ratio{<ours>,CoreSignature="t"} 60000x80`,
			`compss_pendTasks_ratio{<ours>,CoreSignature="t"} 1000x80`,
			`compss_node_info{<theirs>,property="computing_units"} 1x80`,
		},
		alerts: map[time.Duration][]string{10 * time.Minute: nil},
	},
	"events: the first one ever counts, and is past after five minutes": {
		template: "app-security-events",
		series: []string{
			`tetragon_events_total{<h1>,<ours>,severity="high",event_name="exec",k8s_pod_name="p1"} _x40 1x200`,
			`tetragon_events_total{<h1>,<theirs>,severity="high",event_name="exec",k8s_pod_name="p9"} 0+1x240`,
		},
		alerts: map[time.Duration][]string{
			9 * time.Minute: nil, 11 * time.Minute: {"web h1 1"}, 16 * time.Minute: nil,
		},
	},
	"events: a counter goes up, beyond what is allowed": {
		template: "app-security-events", variables: registry.Variables{"maxEvents": int64(2), "severity": "high|critical"},
		series: []string{
			`tetragon_events_total{<h1>,<ours>,severity="high",event_name="exec"} 7x40 9x40 12x40`,
			`tetragon_events_total{<h1>,<ours>,severity="low",event_name="exec"} 0+5x240`,
		},
		alerts: map[time.Duration][]string{
			7 * time.Minute: nil, 12 * time.Minute: nil, 22 * time.Minute: {"web h1 3"}, 28 * time.Minute: nil,
		},
	},
	"events: none are reported at all": {
		template: "app-security-events",
		series:   []string{oursOnH1, `tetragon_events_total{<h2>,<theirs>,severity="high",event_name="exec"} 0+5x240`},
		alerts:   map[time.Duration][]string{10 * time.Minute: nil},
	},
}

func TestTemplates_fireWhenTheyShould(t *testing.T) {
	t.Parallel()
	for name, test := range ruleTests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := registry.Policy{
				Subject: registry.Subject{Type: registry.AppSubject, AppName: "app", AppInstance: "i1", AppComponent: "web"},
				Spec:    registry.Spec{Type: registry.TemplateSpec, TemplateName: test.template}, Variables: test.variables,
			}
			if test.component != "" {
				p.Subject.AppComponent = test.component
			}
			if test.host {
				p.Subject = registry.Subject{Type: registry.HostSubject, HostID: "h1", AgentID: "a"}
			}
			spec, err := render.Policy(&p, test.staleAfter)
			require.NoError(t, err)
			require.Equal(t, test.alerts, firing(t, spec.Expr, test.series, test.alerts))
		})
	}
}

func TestEveryTemplate_hasRuleTests(t *testing.T) {
	t.Parallel()
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range ruleTests {
		for _, alerts := range test.alerts {
			fires[test.template] = fires[test.template] || len(alerts) > 0
		}
		only := func(alerts []string) bool { return len(alerts) == 0 }
		silent[test.template] = silent[test.template] || all(test.alerts, only)
	}
	for _, each := range template.All() {
		require.True(t, fires[each.Name] && (silent[each.Name] || each.Name == template.CPUUsageHost), each.Name)
	}
}

func all(alerts map[time.Duration][]string, is func([]string) bool) bool {
	for _, a := range alerts {
		if !is(a) {
			return false
		}
	}
	return true
}

// firing evaluates the expression as an alerting rule of Prometheus every fifteen seconds.
func firing(
	t *testing.T, expr string, series []string, at map[time.Duration][]string,
) map[time.Duration][]string {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 15s\n  "+world.Replace(strings.Join(series, "\n  ")))
	t.Cleanup(func() { _ = storage.Close() })
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute,
		NoStepSubqueryIntervalFn: func(int64) int64 { return 60_000 },
	})
	t.Cleanup(func() { _ = engine.Close() })
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	require.NoError(t, err)
	rule := rules.NewAlertingRule("r", parsed, 0, 0, labels.EmptyLabels(), labels.EmptyLabels(), labels.EmptyLabels(), "",
		true, slog.New(slog.DiscardHandler))
	out := map[time.Duration][]string{}
	end := time.Duration(0)
	for d := range at {
		end = max(end, d)
	}
	for d := time.Duration(0); d <= end; d += 15 * time.Second {
		_, err := rule.Eval(t.Context(), 0, time.Unix(0, 0).Add(d), rules.EngineQueryFunc(engine, storage), nil, 0)
		require.NoError(t, err)
		if _, asked := at[d]; asked {
			out[d] = alerts(rule)
		}
	}
	return out
}

func alerts(rule *rules.AlertingRule) []string {
	var out []string
	for _, a := range rule.ActiveAlerts() {
		if a.State == rules.StateFiring {
			out = append(out, fmt.Sprintf("%s %s %s", a.Labels.Get("icos_app_component"), a.Labels.Get("icos_host_id"),
				strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", a.Value), "0"), ".")))
		}
	}
	slices.Sort(out)
	return out
}
