// Package syncocm compares the jobs in the database with what Open Cluster Management reports.
package syncocm

import (
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/orchestrator/deploy"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/orchestrator/ocm"
)

// Spec declares the function.
var Spec = deploy.SyncSpec(function.Watch{
	// A change of status wakes it at once, if the cluster of the functions is the hub. Each managed cluster has a namespace
	// with this label.
	APIVersion: "work.open-cluster-management.io/v1", Kind: "ManifestWork", Plural: "manifestworks",
	Labels: map[string]string{"app.kubernetes.io/managed-by": "littoral"}, Namespaces: "open-cluster-management.io/cluster-name",
})

// New reads the settings.
func New(env *function.Env) (*deploy.Syncer, error) { return deploy.NewSync(env, kinds.OCM, ocm.Open) }
