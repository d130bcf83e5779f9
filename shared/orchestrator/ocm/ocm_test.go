package ocm_test

import (
	"testing"

	"k8s.io/client-go/dynamic"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator/conformance"
	"github.com/littoral-project/littoral/shared/orchestrator/ocm"
	"github.com/littoral-project/littoral/test/kubeapi"
)

// open returns a hub with two clusters, all doubles.
func open(t *testing.T) (*conformance.Clusters, *kubeapi.Server, map[string]*kubeapi.Agent) {
	t.Helper()
	hub := kubeapi.Start(t, nil, nil)
	one, two := kubeapi.Start(t, nil, []string{"one-a", "one-b"}), kubeapi.Start(t, nil, []string{"two-a"})
	agents := map[string]*kubeapi.Agent{"one": kubeapi.Join(t, hub, one, "one"), "two": kubeapi.Join(t, hub, two, "two")}
	return &conformance.Clusters{
		Orchestrator: ocm.New(hub.Client(t)),
		Targets: []job.Target{
			{Orchestrator: "ocm", Cluster: "one", Node: "one-a"}, {Orchestrator: "ocm", Cluster: "one", Node: "one-b"},
			{Orchestrator: "ocm", Cluster: "two", Node: "two-a"},
		},
		Objects: map[string]dynamic.Interface{"one": one.Client(t), "two": two.Client(t)},
		Parted:  func(_ *testing.T, cluster string, cut bool) { agents[cluster].Cut(cut) },
		Turn: func() {
			agents["one"].Work()
			agents["two"].Work()
		},
	}, hub, agents
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Run(t, conformance.Can{Silence: true, Refuse: true, Slow: true}, func(t *testing.T) conformance.World {
		t.Helper()
		w, _, _ := open(t)
		return w
	})
}
