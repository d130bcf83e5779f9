// Package resourceget tells the ICOS shell of one cluster, node or job resource.
package resourceget

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icosshell"
	"github.com/littoral-project/littoral/shared/icoswire"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /api/v3/resource/{resource}", Role: auth.Viewer}},
	Needs:  []function.Need{function.SignIn}, // refresh tokens are sent as api_key
}

// Function is the operation with its store.
type Function struct {
	icosshell.Callers

	db *store.DB
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	callers, err := icosshell.NewCallers(env)
	return &Function{callers, env.DB}, err
}

// resource is the answer: what ICOS promises of a resource, and the thing itself under its own name.
type resource struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Type     string            `json:"type"`               // cluster, node or job
	ParentID string            `json:"parentId,omitempty"` // the cluster of a node, the application of a job
	Cluster  *topology.Cluster `json:"cluster,omitempty"`
	Node     *topology.Node    `json:"node,omitempty"`
	Job      *icoswire.Job     `json:"job,omitempty"`
}

// Handle answers the cluster or node that has the key or the name, else the job that has the id or whose resource has it.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("resource")
	if !utf8.ValidString(id) || strings.ContainsRune(id, 0) || len(id) > mostOfID {
		return problem.New(problem.Malformed, "that is no id of a resource")
	}
	for _, find := range []func(context.Context, string) (*resource, error){f.cluster, f.node, f.job} {
		found, err := find(r.Context(), id)
		if err == nil {
			return function.WriteJSON(w, http.StatusOK, found)
		}
		if problem.KindOf(err) != problem.NotFound {
			return err
		}
	}
	return problem.New(problem.NotFound, "there is no cluster, node or job resource %q", problem.Brief(id, 100))
}

// mostOfID is the greatest length of an id, in bytes.
const mostOfID = 300

// part reads a part of the taxonomy.
func (f *Function) part(ctx context.Context, v topology.View) (*topology.Taxonomy, error) {
	found, err := v.Open(ctx, f.db)
	if errors.Is(err, topology.ErrUnknown) {
		return nil, problem.Wrap(problem.NotFound, err, "no telemetry has come yet")
	}
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := found.Write(ctx, &text); err != nil {
		return nil, err
	}
	return topology.Parse(text.Bytes())
}

func (f *Function) cluster(ctx context.Context, id string) (*resource, error) {
	t, err := f.part(ctx, topology.View{Cluster: id})
	if err != nil {
		return nil, err
	}
	for key, c := range t.Cluster {
		return &resource{ID: key, Name: c.Name, Type: "cluster", Cluster: &c}, nil
	}
	return nil, problem.New(problem.NotFound, "there is no such cluster")
}

func (f *Function) node(ctx context.Context, id string) (*resource, error) {
	t, err := f.part(ctx, topology.View{Node: id})
	if err != nil {
		return nil, err
	}
	for _, p := range t.Places() {
		return &resource{ID: p.NodeKey, Name: p.At.Name, Type: "node", ParentID: p.ClusterKey, Node: p.At}, nil
	}
	return nil, problem.New(problem.NotFound, "there is no such node")
}

func (f *Function) job(ctx context.Context, id string) (*resource, error) {
	j, err := job.ByResource(ctx, f.db, id)
	if parsed, wrong := uuid.Parse(id); problem.KindOf(err) == problem.NotFound && wrong == nil {
		j, err = job.Get(ctx, f.db, parsed)
	}
	if err != nil {
		return nil, err
	}
	return &resource{ID: id, Name: j.ResourceName, Type: "job", ParentID: j.ApplicationID.String(), Job: icoswire.JobOf(j)}, nil
}
