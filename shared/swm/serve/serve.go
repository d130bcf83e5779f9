// Package serve is how the operations on objects of SWM read and answer.
package serve

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/groups"
	"github.com/littoral-project/littoral/shared/swm/ipam"
	"github.com/littoral-project/littoral/shared/swm/plan"
)

// Options are the settings of whatever hands in objects.
type Options struct {
	application.Settings

	Ranges ipam.Ranges `envconfig:"IPAM_RANGES"`
}

// Of are those of an application of the caller.
func (o Options) Of(ctx context.Context) groups.Settings {
	return groups.Settings{LostAfter: o.LostAfter, Caller: auth.From(ctx).Subject, Ranges: o.Ranges}
}

// Key returns the object that the path names. The error is NotFound.
func Key(r *http.Request) (groups.Key, error) {
	kind, err := groups.KindOf(r.PathValue("kind"))
	return groups.Key{Kind: kind, Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}, err
}

// Object is one as Kubernetes would show it.
type Object struct {
	APIVersion string          `json:"apiVersion"`
	Kind       groups.Kind     `json:"kind"`
	Metadata   map[string]any  `json:"metadata"`
	Spec       json.RawMessage `json:"spec"`
	Status     any             `json:"status,omitempty"`
}

// Show returns an object with its status.
func Show(ctx context.Context, q store.Querier, s *groups.Stored) (*Object, error) {
	o := &Object{}
	if err := json.Unmarshal(s.Document, o); err != nil {
		return nil, err
	}
	o.Metadata["updatedAt"] = s.UpdatedAt.UTC()
	if s.Application != nil {
		o.Metadata["uid"] = *s.Application
	}
	status, err := plan.StatusOf(ctx, q, s)
	if err == nil && status != nil {
		o.Status = status
	}
	return o, err
}

// Answer writes the object.
func Answer(w http.ResponseWriter, r *http.Request, q store.Querier, status int, k groups.Key) error {
	s, err := groups.Get(r.Context(), q, k)
	if err != nil {
		return err
	}
	o, err := Show(r.Context(), q, s)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, status, o)
}

// Plan is an AssignmentPlan as Kubernetes would show it.
func Plan(namespace, group string, p *plan.Planned) map[string]any {
	return map[string]any{
		"apiVersion": groups.Group + "/" + groups.Version, "kind": "AssignmentPlan",
		"metadata": map[string]any{"name": plan.Name(group), "namespace": namespace, "labels": map[string]string{groups.LabelGroup: group}},
		"spec":     p.Plan.Spec, "status": p.Plan.Status,
	}
}

// Missing is for a group without an application.
func Missing(k groups.Key) error {
	return problem.New(problem.NotFound, "nothing runs for %s: it waits for its members", k)
}
