package plan

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/channels"
	"github.com/littoral-project/littoral/shared/swm/costs"
	"github.com/littoral-project/littoral/shared/swm/endpoints"
	"github.com/littoral-project/littoral/shared/swm/qos"
)

// Codes of actions.
const (
	CreatePod     = 0
	DeletePod     = 1
	CreateChannel = 2
	DeleteChannel = 3

	CreateEndpoint      = 4
	DeleteEndpoint      = 5
	ReconfigureEndpoint = 6
)

// Phases of a plan.
const (
	Idle       = "Idle"       // nothing is to be done
	Placing    = "Placing"    // something has no place yet
	Scheduling = "Scheduling" // actions are being carried out
)

// Phases of a group, beside Placing and Scheduling.
const (
	Waiting = "Waiting" // for its members
	Failed  = "Failed"
)

// AssignmentPlan is where the parts of a group are, and what is done about it.
type AssignmentPlan struct {
	Spec   Spec   `json:"spec"`
	Status Status `json:"status"`
}

// Spec is the model that was solved.
type Spec struct {
	QoSModel Model `json:"qoSModel"`
}

// Model is the part of the solver's model (shared/swm/solve/pb) that is about the group, with the answer: where each workload is, and
// which way each channel takes.
type Model struct {
	AppGroup        AppGroup     `json:"app_group"`
	Recommendations []costs.Cost `json:"recommendations,omitempty"`
}

// AppGroup are the applications of a group.
type AppGroup struct {
	Applications []App          `json:"applications"`
	Channels     []ModelChannel `json:"channels,omitempty"`
}

// App is an application.
type App struct {
	ID        string     `json:"id"`
	Workloads []Workload `json:"workloads"`
}

// Workload is a part that is placed as one.
type Workload struct {
	ID     string `json:"id"`
	CPU    int64  `json:"CPU,omitempty"`    // thousandths of a core
	Memory int64  `json:"memory,omitempty"` // bytes
	Node   string `json:"node,omitempty"`
}

// ModelChannel is a channel with its way.
type ModelChannel struct {
	ID        string `json:"id"`
	QoS       string `json:"qos,omitempty"`
	Source    string `json:"source_workload"`
	Target    string `json:"target_workload"`
	Latency   int64  `json:"latency,omitempty"` // ns
	Bandwidth int64  `json:"bandwidth,omitempty"`
	Network   string `json:"network,omitempty"`
	Path      string `json:"path,omitempty"`
}

// Status is how far the plan is carried out.
type Status struct {
	Phase        string             `json:"phase"`
	ClusterNames map[string]Cluster `json:"clusterNames,omitempty"`
	Actions      []Action           `json:"actions,omitempty"`
	ActionInfo   []Info             `json:"actionInfo,omitempty"` // of each action
	ModelHash    string             `json:"modelHash"`
	SolveHash    string             `json:"solveHash"`
	Reply        Reply              `json:"reply"`
	SolverCalled bool               `json:"solverCalled"`
}

// Cluster is one that the plan uses.
type Cluster struct {
	Name     string `json:"name"`
	Location string `json:"location,omitempty"`
}

// Action is one that the plan asks for.
type Action struct {
	Action int    `json:"action"`
	Object string `json:"object"`          // the pod, the channel, or the node of an endpoint
	Param  string `json:"param,omitempty"` // the node of a pod, the way of a channel, the network and interface of an endpoint
}

// Info is what became of an action.
type Info struct {
	Done  bool   `json:"done"`
	Error string `json:"error,omitempty"`
}

// Reply is the answer of the solver.
type Reply struct {
	Feasible bool     `json:"feasible"`
	Errors   []string `json:"errors,omitempty"`
}

// Planned is everything that is told of an application.
type Planned struct {
	Application *application.Application
	Plan        AssignmentPlan
	Channels    []Channel
}

// Of reads the plan of an application. The error is NotFound.
func Of(ctx context.Context, q store.Querier, id uuid.UUID) (*Planned, error) {
	a, err := application.Get(ctx, q, id)
	if err != nil {
		return nil, err
	}
	now, err := read(ctx, q)
	if err != nil {
		return nil, err
	}
	return of(ctx, q, a, now)
}

// networks are what is known of them for all applications.
type networks struct {
	broken     qos.Broken
	interfaces map[endpoints.At]endpoints.Interface
}

func read(ctx context.Context, q store.Querier) (now networks, err error) {
	if now.broken, err = qos.Read(ctx, q); err != nil {
		return now, err
	}
	now.interfaces, err = endpoints.Read(ctx, q)
	return now, err
}

// All reads the channels of all applications that have some.
func All(ctx context.Context, q store.Querier) ([]Channel, error) {
	ways, err := channels.Of(ctx, q, nil)
	if err != nil {
		return nil, err
	}
	now, err := read(ctx, q)
	if err != nil {
		return nil, err
	}
	out := []Channel{}
	for i := range ways {
		if i > 0 && ways[i].Application == ways[i-1].Application {
			continue
		}
		a, err := application.Get(ctx, q, ways[i].Application)
		if problem.KindOf(err) == problem.NotFound {
			continue // it went meanwhile
		}
		if err != nil {
			return nil, err
		}
		p, err := of(ctx, q, a, now)
		if err != nil {
			return nil, err
		}
		out = append(out, p.Channels...)
	}
	return out, nil
}

func of(ctx context.Context, q store.Querier, a *application.Application, now networks) (*Planned, error) {
	app, err := a.Parsed()
	if err != nil {
		return nil, err
	}
	ways, err := channels.Of(ctx, q, &a.ID)
	if err != nil {
		return nil, err
	}
	known, err := costs.Of(ctx, q, a.ID)
	if err != nil {
		return nil, err
	}
	kept, err := endpoints.Of(ctx, q, a.ID)
	if err != nil {
		return nil, err
	}
	p := &Planned{Application: a, Channels: Channels(a, app, ways, now.broken)}
	for i := range p.Channels {
		p.Channels[i].Ends = endsOf(&p.Channels[i], now.interfaces)
	}
	p.Plan = planOf(a, p.Channels, known)
	p.Plan.Status.endpoints(a, p.Channels, now.interfaces, kept)
	return p, nil
}

func planOf(a *application.Application, all []Channel, known []costs.Cost) AssignmentPlan {
	p := AssignmentPlan{Status: Status{Phase: Idle, ClusterNames: map[string]Cluster{}, Reply: Reply{Feasible: true}}}
	s := &p.Status
	group := App{ID: a.Name}
	where := sha256.New()
	for _, j := range a.Jobs {
		name := job.ReplicaName(j.Component, j.Replica)
		if !j.Live() {
			if !j.Gone() && j.Placed() {
				s.do(Action{DeletePod, name, j.Node}, Info{Error: fault(j)})
			}
			continue
		}
		group.Workloads = append(group.Workloads, Workload{ID: name, CPU: j.CPUMilli, Memory: j.MemoryBytes, Node: j.Node})
		if !j.Placed() {
			s.Phase, s.Reply.Feasible = Placing, s.Reply.Feasible && !j.Tried
			if j.Tried {
				s.Reply.Errors = append(s.Reply.Errors, name+": "+message(j))
			}
			continue
		}
		s.SolverCalled = true
		s.ClusterNames[j.Cluster] = Cluster{Name: j.Cluster}
		fmt.Fprintln(where, name, j.Target)
		s.do(Action{CreatePod, name, j.Node}, Info{Done: j.Available(), Error: fault(j)})
	}
	p.Spec.QoSModel.AppGroup.Applications = []App{group}
	p.Spec.QoSModel.Recommendations = known
	for _, c := range all {
		p.Spec.QoSModel.AppGroup.Channels = append(p.Spec.QoSModel.AppGroup.Channels, ModelChannel{
			c.Name, string(c.Class), c.Source, c.Target, int64(c.MaxLatency), c.Bandwidth, c.Network, c.Path,
		})
		fmt.Fprintln(where, c.Name, c.Source, c.Target, c.Network, c.Path)
		if way := c.way(); way != "" {
			info := Info{Done: c.works()}
			if c.Status == OutOfQoS {
				info.Error = c.Reason
			}
			s.do(Action{CreateChannel, c.Name, way}, info)
		}
		if c.Status == Rejected {
			s.Reply.Errors = append(s.Reply.Errors, c.Name+": "+c.Reason)
		}
	}
	model := sha256.Sum256([]byte(strconv.FormatInt(a.Version, 10) + "\n" + a.Descriptor + costsText(known)))
	s.ModelHash, s.SolveHash = hex.EncodeToString(model[:16]), hex.EncodeToString(where.Sum(nil)[:16])
	return p
}

// do adds an action.
func (s *Status) do(a Action, i Info) {
	s.Actions, s.ActionInfo = append(s.Actions, a), append(s.ActionInfo, i)
	if s.Phase == Idle && !i.Done {
		s.Phase = Scheduling
	}
}

func costsText(known []costs.Cost) string {
	text, err := json.Marshal(known)
	if err != nil {
		return ""
	}
	return string(text)
}

// way is what a channel goes over, for people; empty if over nothing yet.
func (c *Channel) way() string {
	switch {
	case c.Loopback:
		return "loopback"
	case c.Network != "":
		return c.Network + "/" + c.Path
	}
	return ""
}

// fault says what is wrong with a job; empty if nothing is.
func fault(j *job.Job) string {
	if j.State != job.Degraded {
		return ""
	}
	return message(j)
}

// message is the newest that was said of a job.
func message(j *job.Job) string {
	for i := len(j.Conditions) - 1; i >= 0; i-- {
		if m := strings.TrimSpace(j.Conditions[i].Message); m != "" {
			return m
		}
	}
	return string(j.State)
}

// PhaseOf is the phase of a group: that of its plan, or that it failed.
func (p *Planned) PhaseOf() string {
	for _, j := range p.Application.Jobs {
		if j.Live() && j.State == job.Degraded {
			return Failed
		}
	}
	if p.Plan.Status.Phase == Placing {
		return Placing
	}
	return Scheduling
}
