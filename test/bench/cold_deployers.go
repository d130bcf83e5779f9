package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/events"
)

// The Kubernetes API here has no objects: the cases are a late delivery about a job that another owner has finished,
// and a synchronisation without objects. No server of Nuvla and no agent of a machine is configured.
var deployerCases = map[string]maker{
	"deploymentmanager-deploy-kubernetes": late("kubernetes"),
	"deploymentmanager-deploy-ocm":        late("ocm"),
	"deploymentmanager-deploy-nuvla":      late("nuvla"),
	"deploymentmanager-sync-kubernetes":   tick,
	"deploymentmanager-sync-nuvla":        tick,
	"deploymentmanager-sync-ocm":          tick,
	"deploymentmanager-wake":              late("compose"),
	"deploymentmanager-pod-logs": func(_ context.Context, s *scene) (ask, error) {
		text, err := os.ReadFile(s.hub)
		if err == nil {
			err = os.WriteFile(filepath.Join(s.kubeconfigs, s.running.Jobs[0].Targets.Cluster), text, 0o600)
		}
		return ask{client: "operator", method: http.MethodGet, path: "/deploymentmanager/logs?app=" + s.running.ID}, err
	},
}

// late delivers job.ready for the finished job of the running application to the deployer.
func late(orchestrator string) maker {
	return func(ctx context.Context, s *scene) (ask, error) {
		j := s.running.Jobs[0]
		return delivery(events.New(ctx, "/functions/matchmaker-place", events.JobReady, j.ID, events.Job{
			ID: uuid.MustParse(j.ID), ApplicationID: uuid.MustParse(s.running.ID), Component: "web", Type: j.Type,
			State: "Created", Orchestrator: orchestrator, Cluster: j.Targets.Cluster, Epoch: j.Epoch,
		}))
	}
}

const kubeconfig = `{"apiVersion": "v1", "kind": "Config", "current-context": "hub",
"clusters": [{"name": "hub", "cluster": {"server": %q}}], "users": [{"name": "hub", "user": {"token": "none"}}],
"contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "hub"}}]}
`

// writeKubeconfig writes a kubeconfig for the API at the URL and returns its folder and file.
func writeKubeconfig(dir, server string) (folder, file string, err error) {
	folder = filepath.Join(dir, "kubeconfigs")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", "", err
	}
	file = filepath.Join(folder, "hub")
	return folder, file, os.WriteFile(file, fmt.Appendf(nil, kubeconfig, server), 0o600)
}

// noObjects is a Kubernetes API with empty lists.
func noObjects(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"apiVersion": "v1", "kind": "List", "metadata": {}, "items": []}`))
}
