// Package appmodel is the application as everything after parsing sees it, whatever language it was written in: its
// components with what they require, how they may be spread, how they talk to each other, and its policies.
//
// A dialect (package dialect) decodes its documents into it. There is no I/O here and no clock.
package appmodel

import (
	"fmt"
	"slices"
	"time"

	"github.com/littoral-project/littoral/shared/problem"
)

// Dialect names the language that an application was written in. Answers speak the language of the question.
type Dialect string

// The dialects. Package dialect says which can be read.
const (
	ICOS   Dialect = "icos"   // the application descriptor
	CODECO Dialect = "codeco" // the CodecoApp
)

// Application is what somebody wants to have run.
type Application struct {
	Dialect     Dialect         `json:"-"`
	Name        string          `json:"name,omitempty"` // empty when the document has none: the caller makes one up
	Description string          `json:"description,omitempty"`
	Namespace   string          `json:"namespace,omitempty"` // as written; the real one derives from name and id
	Components  []Component     `json:"components"`
	Channels    []Channel       `json:"channels,omitempty"`
	Spreads     []Spread        `json:"spreads,omitempty"`
	Profile     string          `json:"profile,omitempty"`    // which nodes it is better on, by the scores of that name; empty: any
	MixedTypes  bool            `json:"mixedTypes,omitempty"` // components may run on different engines
	Policies    []Policy        `json:"policies,omitempty"`   // of the top level; a component holds its own
	Warnings    []problem.Field `json:"warnings,omitempty"`   // what was ignored, guessed or reversed
	Derived     []problem.Field `json:"derived,omitempty"`    // requirements that follow from a compose file
	HostAccess  []problem.Field `json:"-"`                    // what compose files would get of the machine they run on; not after ParseStored
	Needs       []ComposeNeeds  `json:"-"`                    // what was derived from compose files: to be stored with the document

	Source Source `json:"-"` // the document; nil for one that was accepted before
}

// Source is the document that an application was decoded from, for answers in its own words.
type Source interface {
	// Line returns the line of the document where the value at the path stands, such as policies[0].spec.expr; that of
	// the nearest part of the path that is there. Of a text over several lines, within counts them from 0.
	Line(path string, within int) int
	// Component returns component i as it was handed in, in the types of encoding/json; the caller may change it.
	Component(i int) map[string]any
}

// Line is that of the source; 0 without one.
func (a *Application) Line(path string, within int) int {
	if a.Source == nil {
		return 0
	}
	return a.Source.Line(path, within)
}

// Watched reports whether the descriptor asks for policies, by themselves or by the devices that a component requires.
func (a *Application) Watched() bool {
	return len(a.Policies) > 0 || slices.ContainsFunc(a.Components, func(c Component) bool {
		return len(c.Policies) > 0 || len(c.Requirements.Devices) > 0
	})
}

// Component is a part of an application that is placed as one.
type Component struct {
	Name          string        `json:"name"`
	Type          string        `json:"type"`              // kubernetes, docker or multiple
	RawType       string        `json:"rawType,omitempty"` // as written: manifest, helm, container in older documents
	Manifests     []Manifest    `json:"manifests,omitempty"`
	Requirements  Requirements  `json:"requirements,omitzero"`
	Policies      []Policy      `json:"policies,omitempty"`
	Targets       []Target      `json:"targets,omitempty"` // fixed by the user; empty: the matchmaker chooses
	Communication Communication `json:"communication,omitzero"`
	Scaling       *Scaling      `json:"scaling,omitempty"`
	DPE           *DPE          `json:"dpe,omitempty"`
	Near          Near          `json:"near,omitzero"`
}

// DPE asks for the sidecar that gives the COMPSs agent in a pod of the component the other pods as workers. A figure that is
// left out is that of the sidecar.
type DPE struct {
	Cores    float64 `json:"cores,omitempty"`  // of each pod
	Port     int     `json:"port,omitempty"`   // where agents speak with each other
	MemoryGB float64 `json:"memory,omitempty"` // of each pod
}

// Near is what a component is better close to, beside the components that it talks to.
type Near struct {
	Data  []string `json:"data,omitempty"`  // data sets, by their identifier in the metadata graph
	Users []string `json:"users,omitempty"` // zones of access points (ETSI MEC 013) in which its users are
}

// Component types.
const (
	TypeKubernetes = "kubernetes"
	TypeDocker     = "docker"
	TypeMultiple   = "multiple"
)

// Manifest is one object of a component. Several objects may share a name (a Deployment and its Service); each is an
// entry of its own, in the order the component lists them.
type Manifest struct {
	Name       string `json:"name"`
	YAML       string `json:"yaml,omitempty"` // the object alone, aliases resolved, comments gone; empty if only named
	Kind       string `json:"kind,omitempty"` // empty for a Compose file
	APIVersion string `json:"apiVersion,omitempty"`
}

// Requirements is what a node must have to run the component.
type Requirements struct {
	Architecture string           `json:"architecture,omitempty"` // amd64, arm64, or another as written; empty: any
	CPUMilli     int64            `json:"cpuMilli,omitempty"`     // thousandths of a core, rounded up; 0: none
	MemoryBytes  int64            `json:"memoryBytes,omitempty"`  // bytes, rounded up; 0: none
	Devices      []string         `json:"devices,omitempty"`
	NodeLabel    *NodeLabel       `json:"nodeLabel,omitempty"`
	Resources    map[string]int64 `json:"resources,omitempty"` // further amounts by name: gpu (units), storage (bytes)
}

// NodeLabel names nodes by a label. With several values the component runs once on each of the named nodes.
type NodeLabel struct {
	Key    string   `json:"key"`
	Values []string `json:"values"`
}

// ComposeNeeds is what the compose files of a component ask for in deploy.resources, and the lines that say so.
type ComposeNeeds struct {
	Component   string `json:"component"`
	CPUMilli    int64  `json:"cpuMilli,omitempty"`
	CPULine     int    `json:"cpuLine,omitempty"`
	MemoryBytes int64  `json:"memoryBytes,omitempty"`
	MemoryLine  int    `json:"memoryLine,omitempty"`
}

// Derive gives a component the requirements that it leaves out and its compose files ask for. It is done when a descriptor is
// handed in, and again from what was stored then.
func (a *Application) Derive(asked ComposeNeeds) {
	i := slices.IndexFunc(a.Components, func(c Component) bool { return c.Name == asked.Component })
	if i < 0 {
		return
	}
	need, path := &a.Components[i].Requirements, fmt.Sprintf("components[%d].requirements.", i)
	note := func(key string, line int, amount int64, unit string) {
		a.Derived = append(a.Derived, problem.Field{Path: path + key, Line: line, Detail: fmt.Sprintf(
			"is %d%s, as the services of its compose file ask for in deploy.resources", amount, unit)})
	}
	derived := ComposeNeeds{Component: asked.Component}
	if need.CPUMilli == 0 && asked.CPUMilli > 0 {
		need.CPUMilli, derived.CPUMilli, derived.CPULine = asked.CPUMilli, asked.CPUMilli, asked.CPULine
		note("cpu", asked.CPULine, asked.CPUMilli, "m")
	}
	if need.MemoryBytes == 0 && asked.MemoryBytes > 0 {
		need.MemoryBytes, derived.MemoryBytes, derived.MemoryLine = asked.MemoryBytes, asked.MemoryBytes, asked.MemoryLine
		note("memory", asked.MemoryLine, asked.MemoryBytes, " bytes")
	}
	if derived.CPUMilli > 0 || derived.MemoryBytes > 0 {
		a.Needs = append(a.Needs, derived)
	}
}

// Target is a place the user fixed. Cluster or Node is always set.
type Target struct {
	Cluster      string `json:"cluster_name"           yaml:"cluster_name"`
	Node         string `json:"node_name"              yaml:"node_name"`
	Orchestrator string `json:"orchestrator,omitempty" yaml:"orchestrator,omitempty"` // ocm, nuvla, ...; empty: any
}

// Communication names the Services that a component offers (Outgoing) and needs (Incoming). If the document has the two
// the wrong way round, judging by the owner of the Service, they are swapped here with a warning.
type Communication struct {
	Outgoing []string `json:"outgoing,omitempty"`
	Incoming []string `json:"incoming,omitempty"`
	// Optional are those of Incoming that the component can do without: it may be put where no link reaches them.
	Optional []string `json:"optional,omitempty"`
}

// Scaling bounds what scale-up and scale-down may do.
type Scaling struct {
	MinReplicas int `json:"minReplicas"` // 1 when left out, and never less
	MaxReplicas int `json:"maxReplicas"` // never below MinReplicas
	Step        int `json:"step"`        // 1 when left out
}

// Replica is one copy of a component and the node labels it asks for: one of the values of each key.
type Replica struct {
	Index  int                 `json:"index"`
	Labels map[string][]string `json:"labels,omitempty"`
}

// Component returns the component of that name, nil when there is none.
func (a *Application) Component(name string) *Component {
	for i := range a.Components {
		if a.Components[i].Name == name {
			return &a.Components[i]
		}
	}
	return nil
}

// Replicas returns the copies of the component to place: one for each value of its node label, else a single one.
func (c *Component) Replicas() []Replica {
	label := c.Requirements.NodeLabel
	if label == nil {
		return []Replica{{}}
	}
	replicas := make([]Replica, len(label.Values))
	for i, value := range label.Values {
		replicas[i] = Replica{Index: i, Labels: map[string][]string{label.Key: {value}}}
	}
	return replicas
}

// SecurityLevels is the SCA score from which a node has a level. Placement and runtime policies share this table.
var SecurityLevels = map[string]int{"high": 80, "medium": 50, "low": 0}

// DefaultLostTelemetry is how long a component may be silent when its policy gives no time.
const DefaultLostTelemetry = 5 * time.Minute

// ScoreWeights returns the weights the application gives to the three scores; they sum to one. Without such a policy
// they are equal and set is false.
func (a *Application) ScoreWeights() (performance, energy, security float64, set bool) {
	for i := range a.Policies {
		if w := a.Policies[i].Weights; w != nil {
			return w.Performance, w.Energy, w.Security, true
		}
	}
	return 1.0 / 3, 1.0 / 3, 1.0 / 3, false
}

// LostTelemetry returns how long the component may send no telemetry before it is moved. Policies of the component take
// precedence over those of the top level; the shortest of several counts. ok is false when no policy watches it.
func (a *Application) LostTelemetry(component string) (timeout time.Duration, ok bool) {
	own, top := time.Duration(0), time.Duration(0)
	for p := range a.Applying(component) {
		switch {
		case p.Kind != KindLostTelemetry:
		case p.Component != "" && (own == 0 || p.Timeout < own):
			own = p.Timeout
		case p.Component == "" && (top == 0 || p.Timeout < top):
			top = p.Timeout
		}
	}
	if own > 0 {
		return own, true
	}
	return top, top > 0
}

// SecurityLevel returns the SCA score (0 to 100) a node needs to satisfy every security policy of the component.
func (a *Application) SecurityLevel(component string) int {
	level := 0
	for p := range a.Applying(component) {
		if p.Kind == KindSecurity {
			level = max(level, p.Score)
		}
	}
	return level
}

// NodeUsage returns the tightest node-resource-usage limits of the component: the greatest share (0 to 1) of cpu and
// memory that may be in use, and the bytes that must be free. Zero means no limit. memFree stands beside
// Requirements.MemoryBytes: the larger of the two applies.
func (a *Application) NodeUsage(component string) (cpuMax, memMax float64, memFree int64) {
	for p := range a.Applying(component) {
		if u := p.Usage; u != nil {
			cpuMax, memMax = tighter(cpuMax, u.CPUMax), tighter(memMax, u.MemoryMax)
			memFree = max(memFree, u.MemoryFree)
		}
	}
	return cpuMax, memMax, memFree
}

// UsageOfOthers reports whether there are limits of NodeUsage and they exclude the application's own usage, as is the
// default.
func (a *Application) UsageOfOthers() bool {
	limits := false
	for i := range a.Components {
		for p := range a.Applying(a.Components[i].Name) {
			if p.Usage != nil && !p.Usage.ExcludeApp {
				return false
			}
			limits = limits || p.Usage != nil
		}
	}
	return limits
}

func tighter(a, b float64) float64 {
	if a == 0 || (b > 0 && b < a) {
		return b
	}
	return a
}
