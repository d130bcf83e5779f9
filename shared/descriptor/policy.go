package descriptor

import (
	"math"
	"slices"
	"strings"

	"github.com/littoral-project/littoral/shared/appmodel"
	"go.yaml.in/yaml/v3"
)

func (r *reader) policies(n *yaml.Node, path, component string) []appmodel.Policy {
	var out []appmodel.Policy
	entries := r.list(n, path)
	if r.policyCount += len(entries); r.policyCount > maxPolicies {
		r.fault(path, n, "brings the policies to %d; %d are allowed", r.policyCount, maxPolicies)
		return nil
	}
	for i, entry := range entries {
		path := at(path, i)
		p := appmodel.Policy{Kind: appmodel.KindOther, Component: component} // keeps the place of one that cannot be read
		if entry.Kind != yaml.MappingNode || !r.slips(entry, path, r.fault) {
			if f, ok := r.object(entry, path); ok {
				p = r.policy(f, component)
			}
		}
		out = append(out, p)
	}
	return out
}

func (r *reader) policy(f *fields, component string) appmodel.Policy {
	p := appmodel.Policy{Component: component, Type: r.optional(f, "type"), Name: r.optional(f, "name")}
	p.Raw, _ = plain(f.node).(map[string]any)
	p.Kind = policyKind(f, p.Type)
	otherwise := appmodel.RemediationReallocate
	switch p.Kind {
	case appmodel.KindSecurity:
		r.security(&p, f)
	case appmodel.KindNodeUsage:
		r.nodeUsage(&p, f)
	case appmodel.KindLostTelemetry:
		r.lostTelemetry(&p, f)
	case appmodel.KindScheduler:
		r.scheduler(&p, f)
		otherwise = appmodel.RemediationNone
	case appmodel.KindCustom:
		r.custom(&p, f)
		otherwise = appmodel.RemediationNone
	case appmodel.KindOther:
		otherwise = appmodel.RemediationNone
		if p.Type == "" {
			r.fault(f.path, f.node, "is not a known policy: it has neither a type nor security, "+
				"redeployOnLostTelemetry, fromTemplate or spec")
		} else {
			r.warn(join(f.path, "type"), f.node, "%q is not a known type of policy, ignored", shorten(p.Type))
		}
	}
	r.common(&p, f, otherwise)
	if p.Kind != appmodel.KindOther {
		r.rest(f)
	}
	return p
}

// policyKind tells the kind from the type or, without one, from the key that the short form has.
func policyKind(f *fields, written string) appmodel.PolicyKind {
	switch strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(written)) {
	case "security":
		return appmodel.KindSecurity
	case "noderesourceusage":
		return appmodel.KindNodeUsage
	case "redeployonlosttelemetry":
		return appmodel.KindLostTelemetry
	case "scheduler", "scheduling", "userpreference":
		return appmodel.KindScheduler
	case "custom":
		return appmodel.KindCustom
	case "":
	default:
		return appmodel.KindOther
	}
	switch {
	case f.has("fromTemplate"), f.has("spec"):
		return appmodel.KindCustom
	case f.has("security"):
		return appmodel.KindSecurity
	case f.has("redeployOnLostTelemetry"):
		return appmodel.KindLostTelemetry
	}
	return appmodel.KindOther
}

// common reads what every policy may have.
func (r *reader) common(p *appmodel.Policy, f *fields, otherwise string) {
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
		canonical, ok := appmodel.Remediation(r.text(action, path))
		if !ok {
			r.fault(path, action, "%q is not a remediation: redeploy, scale-up, scale-down, scale-out, scale-in, patch, "+
				"replace, secure or none", shorten(action.Value))
		}
		p.Remediation = canonical
	} else if p.Kind == appmodel.KindCustom && p.FromTemplate == "" {
		r.warn(join(f.path, "remediation"), f.node, "is missing: violations are recorded, nothing is done about them")
	}
	if v, path := f.get("variables"); v != nil {
		p.Variables = r.variables(v, path)
	}
	if v, path := f.get("forecast"); v != nil {
		p.Forecast = r.duration(v, path)
	}
	if v, path := f.get("confirm"); v != nil {
		p.Confirm = r.truth(v, path)
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
	if v, path := properties.get("forecast"); v != nil {
		p.Forecast = r.duration(v, path)
	}
	if v, path := properties.get("confirm"); v != nil {
		p.Confirm = r.truth(v, path)
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

func (r *reader) security(p *appmodel.Policy, f *fields) {
	level, path := f.get("security")
	if p.Type != "" {
		level, path = f.get("level")
	}
	threshold, thresholdPath := f.get("threshold")
	switch {
	case level != nil:
		p.Level = strings.ToLower(r.text(level, path))
		score, known := appmodel.SecurityLevels[p.Level]
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

func (r *reader) nodeUsage(p *appmodel.Policy, f *fields) {
	u := appmodel.Usage{ExcludeApp: true}
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

func (r *reader) lostTelemetry(p *appmodel.Policy, f *fields) {
	p.Timeout = appmodel.DefaultLostTelemetry
	n, path := f.get("redeployOnLostTelemetry")
	if p.Type != "" {
		n, path = f.get("timeout")
	}
	if n != nil {
		p.Timeout = r.duration(n, path)
	}
}

func (r *reader) scheduler(p *appmodel.Policy, f *fields) {
	weight := func(names ...string) float64 {
		n, path := f.get(names...)
		if n == nil {
			return 0
		}
		value, _ := r.number(n, path, 0, 1e6)
		return value
	}
	w := appmodel.Weights{
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

func (r *reader) custom(p *appmodel.Policy, f *fields) {
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
	s := appmodel.Spec{
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
