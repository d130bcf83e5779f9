package kubernetes_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/transport"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/kube"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/conformance"
	"github.com/littoral-project/littoral/shared/orchestrator/kubernetes"
	"github.com/littoral-project/littoral/test/kubeapi"
)

// doubles are clusters by name.
type doubles map[string]*kubeapi.Server

func (d doubles) Names() []string { return []string{"one", "two"} }

func (d doubles) Open(name string) (*kube.Client, error) {
	s := d[name]
	if s == nil {
		return nil, orchestrator.Refuse(orchestrator.ReasonClusterNotFound, "no cluster %s", name)
	}
	return kube.New(s.URL, &transport.Config{})
}

func open(t *testing.T) (*conformance.Clusters, doubles) {
	t.Helper()
	d := doubles{"one": kubeapi.Start(t, nil, []string{"one-a", "one-b"}), "two": kubeapi.Start(t, nil, []string{"two-a"})}
	return &conformance.Clusters{
		Orchestrator: kubernetes.New(d),
		Targets: []job.Target{
			{Orchestrator: "kubernetes", Cluster: "one", Node: "one-a"},
			{Orchestrator: "kubernetes", Cluster: "one", Node: "one-b"},
			{Orchestrator: "kubernetes", Cluster: "two", Node: "two-a"},
		},
		Objects: map[string]dynamic.Interface{"one": d["one"].Client(t), "two": d["two"].Client(t)},
		Parted:  func(_ *testing.T, cluster string, cut bool) { d[cluster].Cut(cut) },
		Turn: func() {
			d["one"].Work()
			d["two"].Work()
		},
	}, d
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Run(t, conformance.Can{Silence: true, Refuse: true, Slow: true}, func(t *testing.T) conformance.World {
		t.Helper()
		w, _ := open(t)
		return w
	})
}

func TestCopiesOfPlacesThatAnswer(t *testing.T) {
	t.Parallel()
	w, d := open(t)
	d["one"].Cut(true)
	_, _, err := w.Orchestrator.Copies(t.Context())
	require.NoError(t, err, "places that do not answer are left out")
}

// TestConformance_real runs the suite against real clusters, if there are any.
func TestConformance_real(t *testing.T) {
	w, kubeconfigs := conformance.Real(t, "kubernetes")
	dir := t.TempDir()
	for name, path := range kubeconfigs {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	w.Orchestrator = kubernetes.New(&kubernetes.Directory{Path: dir})
	conformance.Run(t, conformance.Can{Refuse: true}, func(t *testing.T) conformance.World {
		t.Helper()
		return w
	})
}
