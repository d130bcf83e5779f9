package descriptor

import (
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// PolicyKind is what a policy is about, in whichever form it was written.
type PolicyKind string

// The kinds. A policy of any other type is kept as KindOther and has no effect.
const (
	KindSecurity      PolicyKind = "security"                // Score
	KindNodeUsage     PolicyKind = "node-resource-usage"     // Usage
	KindLostTelemetry PolicyKind = "redeployOnLostTelemetry" // Timeout
	KindScheduler     PolicyKind = "scheduler"               // Weights
	KindCustom        PolicyKind = "custom"                  // FromTemplate or Spec
	KindOther         PolicyKind = "other"
)

// Policy is one rule in normal form; which of the fields from Score on are set depends on Kind.
type Policy struct {
	Kind        PolicyKind     `json:"kind"`
	Name        string         `json:"name,omitempty"`      // as written; the policy manager numbers the others
	Type        string         `json:"type,omitempty"`      // as written; empty in the short forms
	Component   string         `json:"component,omitempty"` // whose section it stands in; empty: the top level
	ApplyTo     []string       `json:"applyTo,omitempty"`   // of the top level: only these components; empty: all
	Remediation string         `json:"remediation"`         // canonical, see Remediation; the default is filled in
	Variables   map[string]any `json:"variables,omitempty"` // text, int64, float64 or bool
	Properties  map[string]any `json:"properties,omitempty"`
	Pending     time.Duration  `json:"pending,omitempty"` // properties.pendingInterval

	Score        int           `json:"score,omitempty"` // least SCA score, 0 to 100
	Level        string        `json:"level,omitempty"` // high, medium or low; empty when a threshold was given
	Usage        *Usage        `json:"usage,omitempty"`
	Timeout      time.Duration `json:"timeout,omitempty"` // longest silence
	Weights      *Weights      `json:"weights,omitempty"`
	FromTemplate string        `json:"fromTemplate,omitempty"`
	Spec         *Spec         `json:"spec,omitempty"`

	// Raw is the policy as written, in the types of encoding/json with int64 for whole numbers.
	Raw map[string]any `json:"raw,omitempty"`
}

// Usage limits the load of the node a component runs on. A zero limits nothing.
type Usage struct {
	CPUMax     float64 `json:"cpuMax,omitempty"`    // share of the cpu in use, above 0 to 1
	MemoryMax  float64 `json:"memoryMax,omitempty"` // share of the memory in use, above 0 to 1
	MemoryFree int64   `json:"memoryFree,omitempty"`
	ExcludeApp bool    `json:"excludeApp"` // leave out what the application itself uses; true unless said otherwise
}

// Weights is how much each score counts. They sum to one.
type Weights struct {
	Performance float64 `json:"performance"`
	Energy      float64 `json:"energy"`
	Security    float64 `json:"security"`
}

// Spec is a custom rule: a PromQL expression, or constraints for another backend.
type Spec struct {
	Expr        string             `json:"expr,omitempty"`
	ViolatedIf  string             `json:"violatedIf,omitempty"` // appended to Expr
	Thresholds  map[string]float64 `json:"thresholds,omitempty"`
	Constraints map[string]any     `json:"constraints,omitempty"`
	Description string             `json:"description,omitempty"`
}

// Remediations, as they are written in normal form.
const (
	RemediationNone       = "none" // record it only
	RemediationReallocate = "reallocate"
)

var remediations = map[string]string{
	"none":     RemediationNone,
	"redeploy": RemediationReallocate, "migrate": RemediationReallocate,
	"reallocation": RemediationReallocate, "reallocate": RemediationReallocate,
	"scale-up": "scale-up", "scale-down": "scale-down", "scale-out": "scale-out", "scale-in": "scale-in",
	"patch": "patch", "replace": "replace", "secure": "secure",
}

// Remediation returns the canonical name of a remediation: reallocate for redeploy, migrate, reallocation and itself;
// none, scale-up, scale-down, scale-out, scale-in, patch, replace and secure for themselves. ok is false for any other.
func Remediation(name string) (canonical string, ok bool) {
	canonical, ok = remediations[strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "_", "-")]
	return canonical, ok
}

// AppliesTo reports whether the policy applies to the component of that name.
func (p *Policy) AppliesTo(component string) bool {
	if p.Component != "" {
		return p.Component == component
	}
	return len(p.ApplyTo) == 0 || slices.Contains(p.ApplyTo, component)
}

// applying yields the policies of a component: those of the top level first, then its own.
func (a *Application) applying(component string) iter.Seq[*Policy] {
	return func(yield func(*Policy) bool) {
		for i := range a.Policies {
			if p := &a.Policies[i]; p.AppliesTo(component) && !yield(p) {
				return
			}
		}
		c := a.Component(component)
		for i := 0; c != nil && i < len(c.Policies); i++ {
			if !yield(&c.Policies[i]) {
				return
			}
		}
	}
}

func (r *reader) policies(n *yaml.Node, path, component string) []Policy {
	var out []Policy
	entries := r.list(n, path)
	if r.policyCount += len(entries); r.policyCount > maxPolicies {
		r.fault(path, n, "brings the policies to %d; %d are allowed", r.policyCount, maxPolicies)
		return nil
	}
	for i, entry := range entries {
		path := at(path, i)
		p := Policy{Kind: KindOther, Component: component} // keeps the place of one that cannot be read
		if entry.Kind != yaml.MappingNode || !r.slips(entry, path, r.fault) {
			if f, ok := r.object(entry, path); ok {
				p = r.policy(f, component)
			}
		}
		out = append(out, p)
	}
	return out
}

func (r *reader) policy(f *fields, component string) Policy {
	p := Policy{Component: component, Type: r.optional(f, "type"), Name: r.optional(f, "name")}
	p.Raw, _ = plain(f.node).(map[string]any)
	p.Kind = policyKind(f, p.Type)
	otherwise := RemediationReallocate
	switch p.Kind {
	case KindSecurity:
		r.security(&p, f)
	case KindNodeUsage:
		r.nodeUsage(&p, f)
	case KindLostTelemetry:
		r.lostTelemetry(&p, f)
	case KindScheduler:
		r.scheduler(&p, f)
		otherwise = RemediationNone
	case KindCustom:
		r.custom(&p, f)
		otherwise = RemediationNone
	case KindOther:
		otherwise = RemediationNone
		if p.Type == "" {
			r.fault(f.path, f.node, "is not a known policy: it has neither a type nor security, "+
				"redeployOnLostTelemetry, fromTemplate or spec")
		} else {
			r.warn(join(f.path, "type"), f.node, "%q is not a known type of policy, ignored", shorten(p.Type))
		}
	}
	r.common(&p, f, otherwise)
	if p.Kind != KindOther {
		r.rest(f)
	}
	return p
}

// policyKind tells the kind from the type or, without one, from the key that the short form has.
func policyKind(f *fields, written string) PolicyKind {
	switch strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(written)) {
	case "security":
		return KindSecurity
	case "noderesourceusage":
		return KindNodeUsage
	case "redeployonlosttelemetry":
		return KindLostTelemetry
	case "scheduler", "scheduling", "userpreference":
		return KindScheduler
	case "custom":
		return KindCustom
	case "":
	default:
		return KindOther
	}
	switch {
	case f.has("fromTemplate"), f.has("spec"):
		return KindCustom
	case f.has("security"):
		return KindSecurity
	case f.has("redeployOnLostTelemetry"):
		return KindLostTelemetry
	}
	return KindOther
}

// common reads what every policy may have.
func (r *reader) common(p *Policy, f *fields, otherwise string) {
	f.has("description")
	scope, path := f.get("apply-to", "apply_to", "applyTo", "component")
	if scope != nil && p.Component != "" {
		r.warn(path, scope, "ignored: a policy inside a component applies to that component")
	} else if scope != nil {
		p.ApplyTo = r.texts(scope, path)
		if len(p.ApplyTo) == 0 {
			r.fault(path, scope, "names no component; leave it out to mean all")
		}
		if slices.Contains(p.ApplyTo, "*") {
			p.ApplyTo = nil
		}
	}
	p.Remediation = otherwise
	if action, path := f.get("remediation", "remediation_action"); action != nil {
		canonical, ok := Remediation(r.text(action, path))
		if !ok {
			r.fault(path, action, "%q is not a remediation: redeploy, scale-up, scale-down, scale-out, scale-in, patch, "+
				"replace, secure or none", shorten(action.Value))
		}
		p.Remediation = canonical
	} else if p.Kind == KindCustom && p.FromTemplate == "" {
		r.warn(join(f.path, "remediation"), f.node, "is missing: violations are recorded, nothing is done about them")
	}
	if v, path := f.get("variables"); v != nil {
		p.Variables = r.variables(v, path)
	}
	v, path := f.get("properties")
	if v == nil {
		return
	}
	properties, ok := r.object(v, path)
	if !ok {
		return
	}
	p.Properties, _ = plain(v).(map[string]any)
	if v, path := properties.get("pendingInterval"); v != nil && v.Value != "0" {
		p.Pending = r.duration(v, path)
	}
}

func (r *reader) variables(n *yaml.Node, path string) map[string]any {
	if _, ok := r.object(n, path); !ok {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if v.Kind != yaml.ScalarNode || isNull(v) {
			r.fault(join(path, shorten(k.Value)), k, "must be text or a number, not %s", kindOf(v))
		}
	}
	m, _ := plain(n).(map[string]any)
	return m
}

func (r *reader) security(p *Policy, f *fields) {
	level, path := f.get("security")
	if p.Type != "" {
		level, path = f.get("level")
	}
	threshold, thresholdPath := f.get("threshold")
	switch {
	case level != nil:
		p.Level = strings.ToLower(r.text(level, path))
		score, known := SecurityLevels[p.Level]
		if !known {
			r.fault(path, level, "%q is not a security level: high, medium or low", shorten(level.Value))
		}
		p.Score = score
		if threshold != nil {
			r.warn(thresholdPath, threshold, "ignored: the level says it already")
		}
	case threshold != nil:
		score, _ := r.number(threshold, thresholdPath, 0, 100)
		p.Score = int(math.Ceil(score))
	default:
		r.fault(join(f.path, "level"), f.node, "is missing: a security policy has a level or a threshold")
	}
}

func (r *reader) nodeUsage(p *Policy, f *fields) {
	u := Usage{ExcludeApp: true}
	share := func(name string) float64 {
		n, path := f.get(name)
		if n == nil {
			return 0
		}
		value, ok := r.number(n, path, 0, 1)
		if ok && value == 0 {
			r.fault(path, n, "must be above 0: it is the share that may be in use, such as 0.8")
		}
		return value
	}
	u.CPUMax, u.MemoryMax = share("cpu_threshold_perc"), share("memory_threshold_perc")
	free, path := f.get("memory_threshold", "memory_threshould") // the published page has the second spelling too
	if free != nil {
		u.MemoryFree = r.quantity(free, path, parseAmount)
	}
	if v, path := f.get("exclude_app_resources"); v != nil {
		u.ExcludeApp = r.truth(v, path)
	}
	p.Usage = &u
	if !f.has("cpu_threshold_perc") && !f.has("memory_threshold_perc") && free == nil {
		r.fault(f.path, f.node, "has no threshold: cpu_threshold_perc, memory_threshold_perc or memory_threshold")
	}
}

func (r *reader) lostTelemetry(p *Policy, f *fields) {
	p.Timeout = DefaultLostTelemetry
	n, path := f.get("redeployOnLostTelemetry")
	if p.Type != "" {
		n, path = f.get("timeout")
	}
	if n != nil {
		p.Timeout = r.duration(n, path)
	}
}

func (r *reader) scheduler(p *Policy, f *fields) {
	weight := func(names ...string) float64 {
		n, path := f.get(names...)
		if n == nil {
			return 0
		}
		value, _ := r.number(n, path, 0, 1e6)
		return value
	}
	w := Weights{
		Performance: weight("performance"),
		Energy:      weight("energy", "energyconsumption", "energyConsumption", "energy_consumption"),
		Security:    weight("security"),
	}
	sum := w.Performance + w.Energy + w.Security
	switch {
	case sum <= 0:
		r.fault(f.path, f.node, "has no weight above zero: performance, energy or security")
		return
	case math.Abs(sum-1) > 1e-9:
		w.Performance, w.Energy, w.Security = w.Performance/sum, w.Energy/sum, w.Security/sum
	}
	if p.Component != "" {
		r.warn(f.path, f.node, "ignored: weights belong to the whole application, in the top-level policies")
		return
	}
	p.Weights = &w
}

func (r *reader) custom(p *Policy, f *fields) {
	p.FromTemplate = strings.TrimSpace(r.optional(f, "fromTemplate"))
	n, path := f.get("spec")
	switch {
	case n == nil && p.FromTemplate == "":
		r.fault(f.path, f.node, "needs fromTemplate or spec")
		return
	case n == nil:
		return
	case p.FromTemplate != "":
		r.fault(path, n, "stands beside fromTemplate; only one of them can be meant")
		return
	}
	spec, ok := r.object(n, path)
	if !ok {
		return
	}
	spec.has("type")
	if p.FromTemplate = r.optional(spec, "templateName"); p.FromTemplate != "" {
		return
	}
	s := Spec{
		Expr:        strings.TrimSpace(r.optional(spec, "expr")),
		ViolatedIf:  strings.TrimSpace(r.optional(spec, "violatedIf")),
		Description: r.optional(spec, "description"),
	}
	if v, path := spec.get("thresholds"); v != nil {
		s.Thresholds = r.thresholds(v, path)
	}
	if v, path := spec.get("constraints"); v != nil {
		if _, ok := r.object(v, path); ok {
			s.Constraints, _ = plain(v).(map[string]any)
		}
	}
	if s.Expr == "" && len(s.Constraints) == 0 {
		r.fault(join(path, "expr"), n, "is missing: a spec has an expression or constraints")
	}
	r.rest(spec)
	p.Spec = &s
}

func (r *reader) thresholds(n *yaml.Node, path string) map[string]float64 {
	if _, ok := r.object(n, path); !ok {
		return nil
	}
	out := map[string]float64{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i].Value
		if value, ok := r.number(n.Content[i+1], join(path, shorten(k)), -math.MaxFloat64, math.MaxFloat64); ok {
			out[k] = value
		}
	}
	return out
}
