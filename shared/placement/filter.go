package placement

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// filter is one hard constraint on a component and a node, regardless of other components. keep is fast; why returns
// the failures with their numbers and is called only if keep returned false.
type filter struct {
	rule Rule
	keep func(r *request, h *have) bool
	why  func(r *request, h *have) []Failure
}

// filters lists the constraints in the order in which they are checked: cheap and frequent ones first. The rules on
// amounts are in filter_capacity.go.
var filters = []filter{
	{RuleUnschedulable, schedulable, func(*request, *have) []Failure {
		return []Failure{{Detail: "the node takes no new work", Needed: "schedulable", Available: "unschedulable"}}
	}},
	{RuleFreshness, fresh, whyStale},
	{RuleTarget, func(r *request, h *have) bool { return len(r.Targets) == 0 || matchesAny(r.Targets, h) }, whyTarget},
	{RuleExcluded, func(r *request, h *have) bool { return !matchesAny(r.Excluded, h) }, whyExcluded},
	{RuleOrchestrator, func(r *request, h *have) bool { return allows(r.orchestrators, h.orchestrator) }, whyOrchestrator},
	{RuleOneOrchestrator, func(r *request, h *have) bool { return allows(r.shared, h.orchestrator) }, whyShared},
	{RuleEngine, func(r *request, h *have) bool { return allows(r.engines, h.engine) }, whyEngine},
	{RuleArchitecture, func(r *request, h *have) bool { return r.arch == "" || r.arch == h.arch }, whyArchitecture},
	{RuleLabel, labelled, whyLabel},
	{RuleSecurity, secure, whySecurity},
	{
		RuleCPUUsage,
		func(r *request, h *have) bool { return r.MaxCPUUsage == 0 || h.CPUUsage <= r.MaxCPUUsage },
		func(r *request, h *have) []Failure { return whyUsage("cpu", r.MaxCPUUsage, h.CPUUsage) },
	},
	{
		RuleMemoryUsage,
		func(r *request, h *have) bool { return r.MaxMemoryUsage == 0 || h.MemoryUsage <= r.MaxMemoryUsage },
		func(r *request, h *have) []Failure { return whyUsage("memory", r.MaxMemoryUsage, h.MemoryUsage) },
	},
	{RuleFreeMemory, func(r *request, h *have) bool { return r.MinFreeMemory <= h.freeMemory }, whyFreeMemory},
	{
		RuleCPU,
		func(r *request, h *have) bool { return r.CPU <= h.freeCPU },
		func(r *request, h *have) []Failure { return []Failure{capacityOf(r, h, RuleCPU).failure()} },
	},
	{
		RuleMemory,
		func(r *request, h *have) bool { return r.Memory <= h.freeMemory },
		func(r *request, h *have) []Failure { return []Failure{capacityOf(r, h, RuleMemory).failure()} },
	},
	{RuleDevice, hasDevices, whyDevices},
	{RuleResource, hasResources, whyResources},
}

// suits reports whether the node passes all filters for the request, except those of cpu and memory.
func suits(r *request, h *have) bool {
	for _, f := range r.asks {
		if !f.keep(r, h) {
			return false
		}
	}
	return true
}

// amounts reports whether the rule is about an amount that components share, so that others on the node matter.
func (f *filter) amounts() bool {
	switch f.rule {
	case RuleCPU, RuleMemory, RuleDevice, RuleResource:
		return true
	default:
		return false
	}
}

// failures returns every failed constraint of the request on the node, with or without those on amounts.
func failures(r *request, h *have, amounts bool) []Failure {
	var out []Failure
	for i := range filters {
		if f := &filters[i]; (amounts || !f.amounts()) && !f.keep(r, h) {
			for _, why := range f.why(r, h) {
				why.Rule = f.rule
				out = append(out, why)
			}
		}
	}
	return out
}

// request is a component's requirements, normalised for comparison.
type request struct {
	*Component
	engines, orchestrators, shared []string // lower case
	arch                           string   // canonical
	devices                        map[string]int64
	staleAfter                     time.Duration
	asks                           []*filter // those that can fail, without cpu and memory
}

func newRequest(c *Component, staleAfter time.Duration) *request {
	r := &request{
		Component: c, engines: lower(c.Engines), orchestrators: lower(c.Orchestrators), shared: lower(c.Shared),
		arch: CanonicalArchitecture(c.Architecture), staleAfter: staleAfter,
	}
	if len(c.Devices) > 0 {
		r.devices = make(map[string]int64, len(c.Devices))
		for _, d := range c.Devices {
			r.devices[d]++
		}
	}
	for i := range filters {
		if f := &filters[i]; r.can(f.rule) {
			r.asks = append(r.asks, f)
		}
	}
	return r
}

// can reports whether a node can fail the rule, which is not cpu or memory.
func (r *request) can(fail Rule) bool {
	switch fail {
	case RuleCPU, RuleMemory:
		return false
	case RuleTarget:
		return len(r.Targets) > 0
	case RuleExcluded:
		return len(r.Excluded) > 0
	case RuleLabel:
		return len(r.Labels) > 0
	case RuleDevice:
		return len(r.devices) > 0
	case RuleResource:
		return len(r.Resources) > 0
	case RuleOrchestrator:
		return len(r.orchestrators) > 0
	case RuleOneOrchestrator:
		return len(r.shared) > 0
	case RuleEngine:
		return len(r.engines) > 0
	case RuleArchitecture:
		return r.arch != ""
	default:
		return true
	}
}

// have is what a node offers, normalised for comparison. The fields for the scores are copied, since a Node is large to
// read.
type have struct {
	*Node
	*form
	index               int32 // in Problem.Nodes
	orch, cluster       int32 // numbers of its orchestrator and cluster
	freeCPU, freeMemory int64 // capacity - other - reserved, at least 0
	idleCPU, idleMemory int64 // free minus the nominal amounts of reservations of none, at least 0
	cpu, memory         int64 // capacity
	watts               float64
	security            float64
}

// form is the normalised text of a node; nodes with equal text share it.
type form struct {
	orchestrator, engine string // lower case
	arch                 string // canonical
}

// measure computes the amounts: watts per free core, negative if unknown, and a security score of at most 100.
// Unrealistically large draws are limited to keep the sums finite.
func (h *have) measure() {
	h.cpu, h.memory = h.CPU, h.Memory
	h.freeCPU, h.freeMemory = h.CPU-min(h.CPU, h.OtherCPU), h.Memory-min(h.Memory, h.OtherMemory)
	for i := range h.Reserved {
		h.freeCPU -= min(h.freeCPU, h.Reserved[i].CPU)
		h.freeMemory -= min(h.freeMemory, h.Reserved[i].Memory)
	}
	h.idleCPU, h.idleMemory = h.freeCPU, h.freeMemory
	for i := range h.Reserved {
		if h.Reserved[i].CPU == 0 {
			h.idleCPU -= min(h.idleCPU, NominalCPU)
		}
		if h.Reserved[i].Memory == 0 {
			h.idleMemory -= min(h.idleMemory, NominalMemory)
		}
	}
	h.watts = -1
	if h.EnergyWatts != nil && h.freeCPU != 0 {
		h.watts = min(*h.EnergyWatts, 1e12) * 1000 / float64(h.freeCPU)
	}
	if h.SCA != nil {
		h.security = min(*h.SCA, 100)
	}
}

// CanonicalArchitecture returns the name the engine compares: amd64 for x86_64, x86-64, x64 and intel; arm64 for
// aarch64; arm for armv6l, armv7l, armhf and the like; 386 for i386 and i686; anything else in lower case.
func CanonicalArchitecture(s string) string {
	switch s = strings.ToLower(strings.TrimSpace(s)); s {
	case "x86_64", "x86-64", "x64", "intel", "intel64", "intel/x86_64":
		return "amd64"
	case "aarch64", "arm64/v8", "arm64v8", "armv8", "arm64/aarch64":
		return "arm64"
	case "armhf", "armv6l", "armv7l", "armv7", "arm/v6", "arm/v7":
		return "arm"
	case "i386", "i486", "i586", "i686", "x86":
		return "386"
	default:
		return s
	}
}

func lower(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = strings.ToLower(s)
	}
	return out
}

func allows(allowed []string, s string) bool { return len(allowed) == 0 || slices.Contains(allowed, s) }

// lower returns the target with the orchestrator in lower case, to compare targets.
func (t Target) lower() Target {
	t.Orchestrator = strings.ToLower(t.Orchestrator)
	return t
}

// matches reports whether the pattern covers the node.
func (t Target) matches(n *Node) bool {
	return (t.Node == "" || t.Node == n.Name) && (t.Cluster == "" || t.Cluster == n.Cluster) &&
		(t.Orchestrator == "" || strings.EqualFold(t.Orchestrator, n.Orchestrator))
}

func matchesAny(ts []Target, h *have) bool {
	return slices.ContainsFunc(ts, func(t Target) bool { return t.matches(h.Node) })
}

func whyTarget(r *request, h *have) []Failure {
	return []Failure{{
		Detail: "must go to " + places(r.Targets),
		Needed: places(r.Targets), Available: place(h.Target()),
	}}
}

func whyExcluded(r *request, h *have) []Failure {
	var by []Target
	for _, t := range r.Excluded {
		if t.matches(h.Node) {
			by = append(by, t)
		}
	}
	return []Failure{{Detail: "excluded as " + places(by), Needed: "not " + places(by), Available: place(h.Target())}}
}

func schedulable(r *request, h *have) bool { return r.Stays || !h.Unschedulable }

func fresh(r *request, h *have) bool {
	return r.Stays || (!h.Stale && (r.staleAfter == 0 || h.Age <= r.staleAfter))
}

func whyStale(r *request, h *have) []Failure {
	f := Failure{Detail: "its telemetry is stale", Needed: "fresh telemetry", Available: "stale telemetry"}
	if h.Age > 0 {
		age := h.Age.Round(time.Millisecond)
		f.Detail, f.Available = fmt.Sprintf("its telemetry is %s old", age), age.String()
		if r.staleAfter > 0 {
			f.Detail += fmt.Sprintf(", stale after %s", r.staleAfter)
			f.Needed = "at most " + r.staleAfter.String()
		}
	}
	return []Failure{f}
}

func whyOrchestrator(r *request, h *have) []Failure {
	return oneOf("orchestrator", r.Orchestrators, h.Orchestrator)
}

func whyShared(r *request, h *have) []Failure {
	return []Failure{elsewhere(strings.Join(r.Shared, ", "), h.Orchestrator)}
}

// elsewhere is the failure of a node under another orchestrator than the others.
func elsewhere(others, has string) Failure {
	return Failure{
		Rule: RuleOneOrchestrator, Detail: "all components go to one orchestrator, the others are on " + others,
		Needed: others, Available: has,
	}
}

func whyEngine(r *request, h *have) []Failure { return oneOf("engine", r.Engines, h.Engine) }

func whyArchitecture(r *request, h *have) []Failure {
	return oneOf("architecture", []string{r.arch}, h.arch)
}

func oneOf(what string, allowed []string, got string) []Failure {
	needed := strings.Join(allowed, " or ")
	if got == "" {
		got = "unknown"
	}
	return []Failure{{
		Detail: fmt.Sprintf("needs %s %s, the node has %s", what, needed, got),
		Needed: needed, Available: got,
	}}
}

func labelled(r *request, h *have) bool {
	for key, values := range r.Labels {
		if got, ok := h.Labels[key]; !ok || !slices.Contains(values, got) {
			return false
		}
	}
	return true
}

func whyLabel(r *request, h *have) []Failure {
	var out []Failure
	for _, key := range sortedKeys(r.Labels) {
		values := r.Labels[key]
		got, ok := h.Labels[key]
		if ok && slices.Contains(values, got) {
			continue
		}
		f := Failure{Key: key, Needed: key + "=" + strings.Join(values, "|"), Available: key + "=" + got}
		if !ok {
			f.Available = "no such label"
		}
		f.Detail = fmt.Sprintf("needs label %s, the node has %s", f.Needed, f.Available)
		out = append(out, f)
	}
	return out
}

func secure(r *request, h *have) bool {
	return r.MinSecurity == 0 || (h.SCA != nil && *h.SCA >= float64(r.MinSecurity))
}

func whySecurity(r *request, h *have) []Failure {
	f := Failure{Needed: fmt.Sprintf("at least %d", r.MinSecurity), Available: "unknown"}
	if h.SCA != nil {
		f.Available = fmt.Sprintf("%v", *h.SCA)
	}
	f.Detail = fmt.Sprintf("needs a security score of %s, the node's is %s", f.Needed, f.Available)
	return []Failure{f}
}

func whyUsage(what string, most, now float64) []Failure {
	return []Failure{{
		Detail: fmt.Sprintf("%s usage may be %s, it is %s", what, percent(most), percent(now)),
		Needed: "at most " + percent(most), Available: percent(now),
	}}
}

func whyFreeMemory(r *request, h *have) []Failure {
	return []Failure{{
		Detail: fmt.Sprintf("needs a node with %s free, this one has %s", size(r.MinFreeMemory), size(h.freeMemory)),
		Needed: size(r.MinFreeMemory), Available: size(h.freeMemory),
	}}
}
