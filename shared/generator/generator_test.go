package generator_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/codecoapp"
	"github.com/littoral-project/littoral/shared/generator"
	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/swm/topologies"
	"github.com/littoral-project/littoral/shared/topology"
)

func world(t *testing.T, text string) *generator.World {
	t.Helper()
	o, err := generator.Parse(text)
	require.NoError(t, err)
	w, err := generator.New(o)
	require.NoError(t, err)
	return w
}

func csv(t *testing.T, w *generator.World, length, step time.Duration, legacy bool) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, w.Run(length, step).WriteCSV(&b, legacy))
	return b.String()
}

func TestTheSameSeedMakesTheSameWorld(t *testing.T) {
	t.Parallel()
	one, same, other := world(t, "nodes=30,seed=7"), world(t, "nodes=30,seed=7"), world(t, "nodes=30,seed=8")
	require.Equal(t, csv(t, one, time.Hour, time.Minute, false), csv(t, same, time.Hour, time.Minute, false))
	require.NotEqual(t, csv(t, one, time.Hour, time.Minute, false), csv(t, other, time.Hour, time.Minute, false))
	taxonomy, err := one.Taxonomy()
	require.NoError(t, err)
	again, err := same.Taxonomy()
	require.NoError(t, err)
	require.Equal(t, string(taxonomy), string(again))
	more, err := world(t, "nodes=30,seed=7,applications=99").Taxonomy()
	require.NoError(t, err)
	require.Equal(t, string(taxonomy), string(more), "applications change no node")
}

func TestOurReadersTakeWhatIsMade(t *testing.T) {
	t.Parallel()
	w := world(t, "nodes=60,seed=3,applications=20")
	text, err := w.Taxonomy()
	require.NoError(t, err)
	taxonomy, err := topology.Parse(text)
	require.NoError(t, err)
	require.Len(t, taxonomy.Places(), 60)

	text, err = w.NetworkTopology()
	require.NoError(t, err)
	document, err := topologies.Parse(text)
	require.NoError(t, err)
	require.Len(t, document.Links, 2*len(w.Links))

	text, err = w.CodecoApps()
	require.NoError(t, err)
	documents := strings.Split(strings.TrimSuffix(string(text), "\n---\n"), "\n---\n")
	require.Len(t, documents, 20)
	for _, d := range documents {
		_, err := codecoapp.Parse([]byte(d))
		require.NoError(t, err, d)
	}

	lists, err := w.Events(100)
	require.NoError(t, err)
	for _, list := range lists {
		_, err := mdm.Parse(list)
		require.NoError(t, err)
	}
	objects, err := w.Run(time.Hour, time.Minute).Objects()
	require.NoError(t, err)
	for _, plural := range []string{"acm-mons", "mdm-mons", "netma-mons"} {
		require.Equal(t, 60, bytes.Count(objects[plural], []byte("codeco.com/v1")), plural)
	}
}

func TestEveryNodeReachesEveryOther(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"nodes=1", "nodes=2", "nodes=100,seed=5", "nodes=40,clusters=40"} {
		w := world(t, text)
		for i, length := range w.PathLengths() {
			if len(w.Nodes) == 1 {
				require.Zero(t, length)
				continue
			}
			require.GreaterOrEqual(t, length, 1.0, "%s: %s", text, w.Nodes[i].Name)
		}
		text, err := w.TopologyJSON(false)
		require.NoError(t, err)
		var m struct {
			Names       []string `json:"node_names"`
			Connections [][]int
		}
		require.NoError(t, json.Unmarshal(text, &m))
		require.Len(t, m.Names, len(w.Nodes))
		for i := range m.Connections {
			for j := range m.Connections {
				require.Equal(t, m.Connections[i][j], m.Connections[j][i], "it is symmetric")
			}
		}
	}
}

func TestADayHasItsShape(t *testing.T) {
	t.Parallel()
	series, err := generator.ReadCSV(strings.NewReader(csv(t, world(t, "nodes=40,seed=2"), 24*time.Hour, 5*time.Minute, false)), "cpu")
	require.NoError(t, err)
	night, noon := 0.0, 0.0
	for _, s := range series {
		for _, one := range s {
			require.GreaterOrEqual(t, one.Value, 0.0)
			require.LessOrEqual(t, one.Value, 100.0)
			switch one.At.Hour() {
			case 3, 4:
				night += one.Value
			case 14, 15:
				noon += one.Value
			}
		}
	}
	require.Greater(t, noon, 1.3*night)
}

// TestLoadsOfAClusterGoTogether: what is left of the load of two nodes when the day is taken away is alike within a cluster.
func TestLoadsOfAClusterGoTogether(t *testing.T) {
	t.Parallel()
	w := world(t, "nodes=20,clusters=2,seed=4")
	series, err := generator.ReadCSV(strings.NewReader(csv(t, w, 24*time.Hour, 5*time.Minute, false)), "cpu")
	require.NoError(t, err)
	changes := func(n *generator.Node) map[time.Time]float64 {
		s, all := series[n.Name], map[time.Time]float64{}
		for i := 1; i < len(s); i++ {
			all[s[i].At] = s[i].Value - s[i-1].Value
		}
		return all
	}
	var within, between []float64
	for i, a := range w.Nodes {
		for _, b := range w.Nodes[i+1:] {
			c := correlation(changes(a), changes(b))
			if a.Cluster == b.Cluster {
				within = append(within, c)
			} else {
				between = append(between, c)
			}
		}
	}
	require.Greater(t, mean(within), mean(between)+0.2)
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, v := range list {
		sum += v
	}
	return sum / float64(len(list))
}

func correlation(a, b map[time.Time]float64) float64 {
	var x, y []float64
	for at, v := range a {
		if w, there := b[at]; there {
			x, y = append(x, v), append(y, w)
		}
	}
	mx, my := mean(x), mean(y)
	xy, xx, yy := 0.0, 0.0, 0.0
	for i := range x {
		xy, xx, yy = xy+(x[i]-mx)*(y[i]-my), xx+(x[i]-mx)*(x[i]-mx), yy+(y[i]-my)*(y[i]-my)
	}
	return xy / math.Sqrt(xx*yy)
}

func TestLegacyFaultsAreThereAndAreSurvived(t *testing.T) {
	t.Parallel()
	text := csv(t, world(t, "nodes=40,seed=6"), 4*time.Hour, time.Minute, true)
	require.Contains(t, text, "NaN")
	require.Contains(t, text, ";")
	require.Contains(t, text, ",-")
	before, unsorted := "", false
	for line := range strings.SplitSeq(text, "\n") {
		at, _, _ := strings.Cut(line, ",")
		unsorted = unsorted || at != "" && at != "time" && at < before
		before = at
	}
	require.True(t, unsorted)
	for _, column := range []string{"cpu", "mem", "ibw", "latency", "node_failure", "link_failure"} {
		series, err := generator.ReadCSV(strings.NewReader(text), column)
		require.NoError(t, err)
		require.Len(t, series, 40)
		late := 0
		for name, s := range series {
			for i := 1; i < len(s); i++ {
				require.True(t, s[i-1].At.Before(s[i].At), name)
				require.False(t, math.IsNaN(s[i].Value))
			}
			if len(s) < 200 {
				late++
			}
		}
		require.Positive(t, late, "some nodes come late")
	}
	for _, bad := range []string{"", "a,b\n", "time,node,cpu\n1,2\n", "time,node,cpu\nnever,a,1\n"} {
		_, err := generator.ReadCSV(strings.NewReader(bad), "cpu")
		require.Error(t, err, bad)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	o, err := generator.Parse("nodes=500, seed=7")
	require.NoError(t, err)
	require.Equal(t, 500, o.Nodes)
	require.Equal(t, uint64(7), o.Seed)
	for _, bad := range []string{"nodes", "nodes=x", "nodes=0", "nodes=99999999999", "colour=1", "nodes=2,clusters=3", "users=-1"} {
		_, err := generator.Parse(bad)
		require.Error(t, err, bad)
	}
}

// TestFilesAreAllThereIs: each is written, and together the events are those of the world.
func TestFilesAreAllThereIs(t *testing.T) {
	t.Parallel()
	o := generator.Default()
	o.Nodes, o.Applications = 420, 30
	w, err := generator.New(o)
	require.NoError(t, err)
	lists, err := w.Events(1000)
	require.NoError(t, err)
	require.Greater(t, len(lists), 1)
	var names []string
	events := 0
	for _, f := range w.Files(generator.Measured{For: 3 * time.Minute, Step: time.Minute}) {
		names = append(names, f.Name)
		var text bytes.Buffer
		require.NoError(t, f.Write(&text), f.Name)
		require.NotEmpty(t, text.Bytes(), f.Name)
		if strings.HasPrefix(f.Name, "events-") {
			require.Equal(t, lists[events], text.Bytes())
			events++
		}
	}
	require.Equal(t, len(lists), events)
	require.Subset(t, names, []string{"taxonomy.json", "data.csv", "metrics.prom", "acm-mons.yaml", "mdm-mons.yaml", "netma-mons.yaml"})
}
