// Package deploykubernetes carries out jobs directly at the APIs of clusters.
package deploykubernetes

import (
	"context"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/orchestrator/carry"
	"github.com/littoral-project/littoral/shared/orchestrator/kubernetes"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:   []string{events.JobReady},
	Emits:      carry.Emits,
	Timeout:    30 * time.Second,
	Kubernetes: true,
}

// Function is the worker with its books.
type Function struct{ carrier *carry.Carrier }

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	carrier, err := carry.Open(env, "kubernetes", kubernetes.Open)
	return &Function{carrier}, err
}

// Work takes the job under a lease, so that an agent that polls for it does not carry it out too, and reports the
// result after a short wait; the synchronisation sees what takes longer.
func (f *Function) Work(ctx context.Context, e cloudevents.Event) error {
	return f.carrier.Work(ctx, e)
}
