// Package deploykubernetes carries out jobs directly at the APIs of clusters.
package deploykubernetes

import (
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/orchestrator/deploy"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/orchestrator/kubernetes"
)

// Spec declares the function.
var Spec = deploy.Spec()

// New reads the settings.
func New(env *function.Env) (*deploy.Deployer, error) {
	return deploy.New(env, kinds.Direct, kubernetes.Open)
}
