// Package synckubernetes compares the jobs in the database with what runs in clusters that are reached directly.
package synckubernetes

import (
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/orchestrator/deploy"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/orchestrator/kubernetes"
)

// Spec declares the function.
var Spec = deploy.SyncSpec()

// New reads the settings.
func New(env *function.Env) (*deploy.Syncer, error) {
	return deploy.NewSync(env, kinds.Direct, kubernetes.Open)
}
