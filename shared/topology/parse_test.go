package topology_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/topology"
)

const contracts = "../../test/contracts/topology/"

func load(t testing.TB, file string) *topology.Taxonomy {
	t.Helper()
	body, err := os.ReadFile(contracts + file)
	require.NoError(t, err)
	taxonomy, err := topology.Parse(body)
	require.NoError(t, err)
	return taxonomy
}

// The captured topology of ICOS 1.2.5: 4 OCM clusters and Nuvla, 8 nodes, 141 pods at cluster level.
func TestParse_olderShape(t *testing.T) {
	t.Parallel()
	taxonomy := load(t, "topology.json")
	require.Len(t, taxonomy.Cluster, 5)
	require.Len(t, taxonomy.Places(), 8)
	age, known := taxonomy.Timestamp.TimeSinceOldest.Get()
	require.True(t, known)
	require.InDelta(t, 109.45, age, 0.01)

	pods, types := 0, map[string]int{}
	for _, c := range taxonomy.Cluster {
		types[c.Type]++
		for range c.Pods() {
			pods++
		}
	}
	require.Equal(t, map[string]int{"ocm": 4, "nuvla": 1}, types)
	require.Equal(t, 141, pods)

	worker := taxonomy.Cluster["icos-cluster-2a"].Node["k8s-worker1"]
	cpu, known := worker.CPUMilli()
	require.True(t, known)
	require.EqualValues(t, 4000, cpu)
	memory, known := worker.MemoryBytes()
	require.True(t, known)
	require.EqualValues(t, 8325169152, memory)
	require.Equal(t, topology.Kubernetes, worker.Engine, "inferred from the type ocm")
	require.EqualValues(t, 6, worker.Vulnerabilities["critical"])
	require.True(t, worker.CanSchedule())
	_, known = worker.UsedCPUMilli()
	require.False(t, known, "the older shape has no usage, which is not a usage of zero")

	docker := taxonomy.Cluster["nuvla"].Node["edge-docker-1"]
	require.Equal(t, topology.Docker, docker.Engine, "inferred from the type nuvla")
	_, known = docker.CPUMilli()
	require.False(t, known)
	require.True(t, docker.ScaScore.IsZero())
}

// The input of the topology exporter: five nodes, six pods of two applications, and little else.
func TestParse_newerShapeWithNamesOnly(t *testing.T) {
	t.Parallel()
	taxonomy := load(t, "topology_input.json")
	require.Len(t, taxonomy.Cluster, 3)
	places := taxonomy.Places()
	require.Len(t, places, 5)
	require.Equal(t, [2]string{"cluster-1", ".1"}, [2]string{places[0].Cluster, places[0].Node})
	pods := taxonomy.Cluster["-1"].Node[".1"].Pod
	require.Len(t, pods, 2)
	require.Equal(t, "app_component_1", pods["_1.1-1"].Workload["app_instance_1"].AppComponent)
	require.Equal(t, topology.EngineUnknown, taxonomy.Cluster["-1"].Engine)
}

const newest = `{"timestamp":{"oldestTimestamp":1739362000,"timeSinceOldest":14},"controller":{},
"cluster":{"agent-ocm-1":{
"type":"ocm","uuid":"u","name":"edge-cluster-b","engine":"Kubernetes","icosAgentID":"agent-ocm-1","clusterLink":true,
"serviceLevelAgreement":{"name":""},"API":{"commProtocol":""},
"node":{"edge-node-1":{"type":"","uuid":"h","name":"edge-node-1","engine":"Kubernetes",
"location":{"latitude":37.98,"longitude":23.73},"vulnerabilities":{"critical":0,"high":3},
"ScaScore":72,"lastSeen":1739362014.5,"schedulable":false,
"staticMetrics":{"cpuArchitecture":"aarch64","cpuCores":4,"gpuMaxFrequency":"","RAMMemory":8189607936,
"storage":[{"name":"mmcblk0p2","capacity":31268536320}]},
"dynamicMetrics":{"upTime":"","cpuFrequency":"1500000000","freeRAM":4123456789,"usedRAM":4066151147,
"cpuUsagePercent":50},
"networkInterfaces":{"eth0":{"name":"eth0","speed":125000000,"ip":"192.0.2.44","ingressUssage":0}},
"devices":{"video_0":{"name":"video_0","type":"video","status":"available","path":"squat.ai/video"}},
"pod":{"p1":{"name":"ns__mjpeg","numberOfContainers":1,
"container":{"c":{"name":"c","containerMemory":1048576,"cpuUsage":0.5}},
"workload":{"i1":{"icos_app_name":"a","icos_app_instance":"i1","icos_app_component":"mjpeg"}}},
"p2":{"name":"ns__other","container":{"c":{"name":"c","containerMemory":7,"cpuUsage":0.25}}}},
"labels":{"color":"green"}}},"any":null}}}`

func TestParse_newestShapeSurvivesARoundTrip(t *testing.T) {
	t.Parallel()
	first, err := topology.Parse([]byte(newest))
	require.NoError(t, err)
	body, err := json.Marshal(first)
	require.NoError(t, err)
	second, err := topology.Parse(body)
	require.NoError(t, err)
	require.Equal(t, first, second)

	for _, literal := range []string{
		`"ScaScore":72`, `"ingressUssage":0`, `"icosAgentID":"agent-ocm-1"`, `"any":null`, `"lastSeen":1739362014.5`,
		`"schedulable":false`,
	} {
		require.Contains(t, string(body), literal)
	}
	require.NotContains(t, string(body), "upTime", "an empty text is an unknown measure and is left out")
	require.Contains(t, string(body), `"cpuFrequency":1500000000`, "a number written as text is read")
}

// TestNewestShapeHasEveryKey that ICOS has, in its spelling: a document with all of them filled is written as it was read.
func TestNewestShapeHasEveryKey(t *testing.T) {
	t.Parallel()
	written, err := json.Marshal(load(t, "newest.json"))
	require.NoError(t, err)
	read, err := os.ReadFile(contracts + "newest.json")
	require.NoError(t, err)
	require.JSONEq(t, string(read), string(written))
}

func TestUsage(t *testing.T) {
	t.Parallel()
	taxonomy, err := topology.Parse([]byte(newest))
	require.NoError(t, err)
	n := taxonomy.Cluster["agent-ocm-1"].Node["edge-node-1"]
	used, known := n.UsedCPUMilli()
	require.True(t, known)
	require.EqualValues(t, 2000, used, "half of four cores")
	cpu, memory := n.OwnUsage()
	require.EqualValues(t, 500, cpu, "only the pod with an application instance is ours")
	require.EqualValues(t, 1<<20, memory)
	cpu, memory = n.OthersUsage()
	require.EqualValues(t, 1500, cpu)
	require.EqualValues(t, 4066151147-1<<20, memory)
	require.False(t, n.CanSchedule())
}

// TestUsage_ofWhatNobodyMeasured: a node with known memory but unknown usage is not full.
func TestUsage_ofWhatNobodyMeasured(t *testing.T) {
	t.Parallel()
	n := topology.Node{StaticMetrics: topology.StaticMetrics{
		CPUCores: topology.Known(4), RAMMemory: topology.Known(8 << 30),
	}}
	_, known := n.UsedMemoryBytes()
	require.False(t, known)
	cpu, memory := n.OthersUsage()
	require.Zero(t, cpu)
	require.Zero(t, memory)
	n.DynamicMetrics.FreeRAM = topology.Known(6 << 30)
	_, memory = n.OthersUsage()
	require.EqualValues(t, 2<<30, memory)
}

func TestParse_refuses(t *testing.T) {
	t.Parallel()
	const (
		at     = "cluster[a].node[b]"
		cores  = at + ".staticMetrics.cpuCores"
		ram    = at + ".staticMetrics.RAMMemory"
		device = at + ".devices[d].status"
	)
	node := func(inner string) string { return `{"cluster":{"a":{"node":{"b":{` + inner + `}}}}}` }
	for name, row := range map[string]struct {
		body string
		kind problem.Kind
		path string
	}{
		"nothing at all":                  {``, problem.Malformed, ""},
		"half a document":                 {`{"cluster":`, problem.Malformed, ""},
		"two documents":                   {`{"cluster":{}}{"cluster":{}}`, problem.Malformed, ""},
		"a list":                          {`[]`, problem.Invalid, ""},
		"no clusters key":                 {`{}`, problem.Invalid, "cluster"},
		"clusters as a list":              {`{"cluster":[]}`, problem.Invalid, "cluster"},
		"a cluster that is a number":      {`{"cluster":{"a":1}}`, problem.Invalid, "cluster[a]"},
		"a cluster given twice":           {`{"cluster":{"a":{},"a":{}}}`, problem.Invalid, "cluster[a]"},
		"a node given twice":              {`{"cluster":{"a":{"node":{"b":{},"b":{}}}}}`, problem.Invalid, at},
		"an empty key":                    {`{"cluster":{"":{}}}`, problem.Invalid, "cluster"},
		"an unknown cluster type":         {`{"cluster":{"a":{"type":"mainframe"}}}`, problem.Invalid, "cluster[a].type"},
		"a cluster name that is a number": {`{"cluster":{"a":{"name":7}}}`, problem.Invalid, "cluster[a].name"},
		"cores as words":                  {node(`"staticMetrics":{"cpuCores":"four"}`), problem.Invalid, cores},
		"cores as an object":              {node(`"staticMetrics":{"cpuCores":{}}`), problem.Invalid, cores},
		"negative memory":                 {node(`"staticMetrics":{"RAMMemory":-1}`), problem.Invalid, ram},
		"a billion-ish count of cores":    {node(`"staticMetrics":{"cpuCores":1e9}`), problem.Invalid, cores},
		"a number beyond float64":         {node(`"ScaScore":1e999`), problem.Invalid, at + ".ScaScore"},
		"not a number as text":            {node(`"ScaScore":"NaN"`), problem.Invalid, at + ".ScaScore"},
		"a score above 100":               {node(`"ScaScore":101`), problem.Invalid, at + ".ScaScore"},
		"a time after every calendar":     {node(`"lastSeen":1e18`), problem.Invalid, at + ".lastSeen"},
		"schedulable as text":             {node(`"schedulable":"yes"`), problem.Invalid, at + ".schedulable"},
		"a device in an unknown state":    {node(`"devices":{"d":{"status":"x"}}`), problem.Invalid, device},
		"a negative usage of a container": {
			node(`"pod":{"p":{"container":{"c":{"cpuUsage":-1}}}}`), problem.Invalid, at + ".pod[p].container[c].cpuUsage",
		},
		"a NUL in a name":         {node(`"name":"x\u0000"`), problem.Invalid, ""},
		"a line break in a label": {node(`"labels":{"k":"a\nb"}`), problem.Invalid, at + ".labels[k]"},
		"text that is not UTF-8":  {"{\"cluster\":{\"\xff\":{}}}", problem.Malformed, ""},
		"depth beyond any taxonomy": {
			`{"cluster":{},"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, problem.Malformed, "",
		},
		"depth that is never closed": {strings.Repeat(`{"cluster":`, 100_000), problem.Malformed, ""},
		"one key of a megabyte": {
			`{"cluster":{"` + strings.Repeat("k", 1<<20) + `":{}}}`, problem.Invalid,
			"cluster[" + strings.Repeat("k", 80) + "...]",
		},
		"one byte more than the limit":          {strings.Repeat(" ", topology.MaxBytes+1), problem.TooLarge, ""},
		"a backslash at the very end of a text": {`{"cluster":{"a\`, problem.Malformed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := topology.Parse([]byte(row.body))
			var e *problem.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, row.kind, e.Kind, "%v", e)
			if row.path != "" {
				require.Equal(t, row.path, e.Fields[0].Path, "%v", e)
			}
			require.Less(t, len(e.Error()), 4096, "the answer stays small")
		})
	}
}

func TestParse_reportsEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	var nodes []string
	for i := range 300 {
		nodes = append(nodes, fmt.Sprintf(`"n%d":{"ScaScore":-1,"staticMetrics":{"cpuCores":-1}}`, i))
	}
	_, err := topology.Parse([]byte(`{"cluster":{"a":{"node":{` + strings.Join(nodes, ",") + `}}}}`))
	var e *problem.Error
	require.ErrorAs(t, err, &e)
	require.Len(t, e.Fields, 100)
	require.Contains(t, e.Detail, "500 further")
}

func TestPlaces_neverCallsTwoPlacesAlike(t *testing.T) {
	t.Parallel()
	taxonomy, err := topology.Parse([]byte(`{"cluster":{
		"a":{"name":"x","node":{"1":{"name":"n"},"2":{"name":"n"},"3":{"name":"1"},"4":{}}},
		"b":{"name":"x","node":{"1":{}}},
		"c":{"name":"a","node":{"1":{}}},
		"d":{"name":"edge","node":{"agent-7":{"name":"rpi"}}}}}`))
	require.NoError(t, err)
	var got []string
	for _, p := range taxonomy.Places() {
		got = append(got, p.Cluster+"/"+p.Node)
	}
	require.Equal(t, []string{"a/1", "a/2", "a/3", "a/4", "b/1", "c/1", "edge/rpi"}, got)
}

// TestV1_hasNoTimestampOfOurs: readers of the older shape may be strict.
func TestV1_hasNoTimestampOfOurs(t *testing.T) {
	t.Parallel()
	known := topology.Known
	taxonomy := topology.Taxonomy{Timestamp: topology.Timestamp{
		OldestTimestamp: known(1), TimeSinceOldest: known(2), StaleAfter: known(3), SilentUntil: known(4),
	}}
	older, err := json.Marshal(taxonomy.V1().Timestamp)
	require.NoError(t, err)
	require.JSONEq(t, `{"oldestTimestamp": 1, "timeSinceOldest": 2}`, string(older))
}

func FuzzParse(f *testing.F) {
	for _, file := range []string{"topology.json", "topology_input.json"} {
		body, err := os.ReadFile(contracts + file)
		require.NoError(f, err)
		f.Add(body)
	}
	f.Add([]byte(newest))
	f.Add([]byte(`{"cluster":{"a":{"any":[{}],"pod":{"p":{"container":{"c":{"node":"b"}}}},"node":{"b":{}}}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		first, err := topology.Parse(body)
		if err != nil {
			require.NotEqual(t, problem.Internal, problem.KindOf(err))
			return
		}
		// An accepted taxonomy can be written and read again without a change.
		written, err := json.Marshal(first)
		require.NoError(t, err)
		second, err := topology.Parse(written)
		require.NoError(t, err)
		again, err := json.Marshal(second)
		require.NoError(t, err)
		require.Equal(t, string(written), string(again))
		older, err := json.Marshal(first.V1())
		require.NoError(t, err)
		_, err = topology.Parse(older)
		require.NoError(t, err)
		for _, p := range first.Places() {
			cpu, memory := p.At.OthersUsage()
			require.GreaterOrEqual(t, cpu, int64(0))
			require.GreaterOrEqual(t, memory, int64(0))
		}
	})
}
