// Package synckubernetes compares the jobs in the database with what runs in clusters that are reached directly.
package synckubernetes

import (
	"context"
	"time"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/orchestrator/carry"
	"github.com/littoral-project/littoral/shared/orchestrator/kubernetes"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:    []string{events.Tick},
	Emits:       carry.Emits,
	Timeout:     120 * time.Second,
	Memory:      "128Mi", // pages of all that is there are in memory several times
	Concurrency: 1,       // a second one at the same time would only find the same
	Kubernetes:  true,
}

// Function is the task with its books.
type Function struct{ carrier *carry.Carrier }

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	carrier, err := carry.Open(env, "kubernetes", kubernetes.Open)
	return &Function{carrier}, err
}

// Run looks at every job.
func (f *Function) Run(ctx context.Context) error { return f.carrier.Sync(ctx) }
