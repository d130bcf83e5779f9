// Package deployocm carries out jobs through Open Cluster Management.
package deployocm

import (
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/orchestrator/deploy"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/orchestrator/ocm"
)

// Spec declares the function.
var Spec = deploy.Spec()

// New reads the settings.
func New(env *function.Env) (*deploy.Deployer, error) { return deploy.New(env, kinds.OCM, ocm.Open) }
