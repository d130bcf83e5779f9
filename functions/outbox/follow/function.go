// Package follow stores who takes which events, as the Triggers of the cluster say it at the time: an event leaves the
// outbox only when they all have it.
//
// The Triggers are read rather than what this version was built with: an overlay leaves out families, and adds others.
package follow

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/kube"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:    []string{events.Tick, events.ApplicationFirst, events.PolicyFirst},
	NoPrewake:   true,
	Class:       function.Remote,
	Concurrency: 1,
	Kubernetes:  true,
}

// ours is the label of Triggers that the overlays have. Another's Trigger on our Broker wakes something that does not say
// what it has taken.
const ours = "app.kubernetes.io/part-of=littoral"

var triggers = schema.GroupVersionResource{Group: "eventing.knative.dev", Version: "v1", Resource: "triggers"}

// Function is the task with its store and the API of the cluster; without that it leaves subscriptions as they are.
type Function struct {
	db       *store.DB
	log      *slog.Logger
	triggers dynamic.ResourceInterface
}

type config struct {
	// Triggers is where the Triggers are: "in-cluster", or the path of a kubeconfig.
	Triggers  string `envconfig:"TRIGGERS"`
	Namespace string `envconfig:"TRIGGERS_NAMESPACE" default:"littoral"`
}

// New reads the settings and dials nothing.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB, log: env.Log}
	var c config
	if err := env.Config(&c); err != nil || c.Triggers == "" {
		return f, err
	}
	client, err := kube.Open(c.Triggers, env.Observe.Transport)
	if err != nil {
		return nil, fmt.Errorf("TRIGGERS: %w", err)
	}
	f.triggers = client.Resource(triggers).Namespace(c.Namespace)
	return f, nil
}

// Run stores the subscriptions if they are others than before.
func (f *Function) Run(ctx context.Context) error {
	if f.triggers == nil {
		return nil
	}
	var list []store.Subscription
	err := kube.Each(ctx, f.triggers, ours, func(u *unstructured.Unstructured) {
		some, err := of(u)
		if err != nil { // its events are as safe as the Broker makes them
			f.log.WarnContext(ctx, "nobody knows what a Trigger takes", "trigger", u.GetName(), "error", err.Error())
		}
		list = append(list, some...)
	})
	if err != nil {
		return fmt.Errorf("list the Triggers: %w", err)
	}
	changed, err := f.db.Subscribe(ctx, list)
	if changed && err == nil {
		f.log.InfoContext(ctx, "the Triggers changed", "subscriptions", len(list))
	}
	return err
}

// of lists what a Trigger takes. A function of ours is its subscriber, whose name it records events under.
func of(u *unstructured.Unstructured) ([]store.Subscription, error) {
	text, err := json.Marshal(u.Object["spec"])
	if err != nil {
		return nil, err
	}
	var spec struct {
		events.Selection

		Subscriber struct {
			Ref struct {
				Name string `json:"name"`
			} `json:"ref"`
		} `json:"subscriber"`
	}
	if err := json.Unmarshal(text, &spec); err != nil {
		return nil, err
	}
	kinds, err := spec.Kinds()
	if err != nil || spec.Subscriber.Ref.Name == "" {
		return nil, err
	}
	return store.Subscriptions(spec.Subscriber.Ref.Name, kinds), nil
}
