// Package deploynuvla carries out jobs through Nuvla.
package deploynuvla

import (
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/orchestrator/deploy"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/orchestrator/nuvla"
)

// Spec declares the function.
var Spec = deploy.Remote(deploy.Spec(), function.Nuvla)

// New reads the settings.
func New(env *function.Env) (*deploy.Deployer, error) {
	return deploy.New(env, kinds.Nuvla, nuvla.Open)
}
