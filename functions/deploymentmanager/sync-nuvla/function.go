// Package syncnuvla compares the jobs in the database with what Nuvla reports of its deployments.
package syncnuvla

import (
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/orchestrator/deploy"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/orchestrator/nuvla"
)

// Spec declares the function.
var Spec = deploy.Remote(deploy.SyncSpec(), function.Nuvla)

// New reads the settings.
func New(env *function.Env) (*deploy.Syncer, error) {
	return deploy.NewSync(env, kinds.Nuvla, nuvla.Open)
}
