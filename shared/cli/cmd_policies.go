package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/problem"
)

type getPolicies struct {
	outputFlag
	App   string `placeholder:"ID" complete:"app" help:"Application: id, beginning of its id, or name."`
	Phase string `enum:",inactive,enforced,violated,unknown" default:"" placeholder:"PHASE" help:"inactive, enforced, violated or unknown."`
}

// Run lists policies.
func (c *getPolicies) Run(s *session) error {
	list, err := s.policies(s.ctx, c.App, c.Phase)
	if err != nil {
		return err
	}
	if done, err := s.said(list, namesOf("policy", list, policyID)...); done {
		return err
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(s.err, "No policies.")
		return err
	}
	return s.policyTable(list)
}

func policyID(p *api.Policy) string { return p.ID }

func (s *session) policyTable(list []api.Policy) error {
	values := s.values(list)
	rows := make([][]string, len(list))
	for i := range list {
		p := &list[i]
		rows[i] = []string{
			or(p.Subject.AppName), or(strings.Trim(p.Subject.Component, "*")), p.Status.Phase, or(p.Action.ExtraParams["remediation"]),
			present(p, values), or(limit(p)), p.ID, p.Name, or(variables(p)), watches(p),
		}
	}
	return s.newCut("APP", "COMPONENT", "PHASE", "REMEDY", "NOW", "LIMIT", "+ID", "+NAME", "+VARIABLES", "WATCHES").write(rows...)
}

// variables are those of a policy, as "policy set" takes them.
func variables(p *api.Policy) string {
	all := make(map[string]string, len(p.Variables))
	for name, v := range p.Variables {
		all[name] = value(v)
	}
	return pairs(all)
}

// present is the value that a policy watches; "-" of one that watches none, "?" where it cannot be had.
func present(p *api.Policy, values map[string]*float64) string {
	if limit(p) == "" {
		return "-"
	}
	return number(values[p.ID])
}

func (s *session) policies(ctx context.Context, app, phase string) ([]api.Policy, error) {
	if app != "" {
		a, err := s.application(ctx, app)
		if err != nil {
			return nil, err
		}
		app = a.ID
	}
	return s.client.Policies(ctx, app, phase)
}

// watches names what a policy watches, shortly.
func watches(p *api.Policy) string {
	return or(cmp.Or(p.Spec.Template, p.Spec.Description, p.Spec.Expr, p.Name))
}

// limit is the condition under which a policy is violated, with its variables filled in where they are.
func limit(p *api.Policy) string {
	if r := p.Status.RenderedSpec; r != nil && r.ViolatedIf != "" {
		return r.ViolatedIf
	}
	return p.Spec.ViolatedIf
}

type violationsCommand struct {
	App string `placeholder:"ID" complete:"app" help:"Application: id, beginning of its id, or name."`
	outputFlag
}

// Help is the long help of violations.
func (violationsCommand) Help() string { return "Example: littoral violations --app shop" }

// Run lists the policies that are violated now.
func (c *violationsCommand) Run(s *session) error {
	list, err := s.policies(s.ctx, c.App, "violated")
	if err != nil {
		return err
	}
	if done, err := s.said(list, namesOf("policy", list, policyID)...); done {
		return err
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(s.out, "No policy is violated.")
		return err
	}
	var values map[string]*float64
	if s.wide() {
		values = s.values(list)
	}
	rows := make([][]string, len(list))
	for i := range list {
		p := &list[i]
		var since time.Time
		for _, e := range p.Status.Events {
			if e.Type == "violated" {
				since = e.Timestamp
			}
		}
		rows[i] = []string{
			or(p.Subject.AppName), or(strings.Trim(p.Subject.Component, "*")), s.when(since), or(p.Action.ExtraParams["remediation"]),
			or(limit(p)), present(p, values), p.ID, p.Name, watches(p),
		}
	}
	return s.newCut("APP", "COMPONENT", "SINCE", "REMEDY", "LIMIT", "+NOW", "+ID", "+NAME", "WATCHES").write(rows...)
}

type policyCommand struct {
	Activate   policyActivate   `cmd:"" help:"Have a policy watched."`
	Deactivate policyDeactivate `cmd:"" help:"Have a policy watched no more."`
	Set        policySet        `cmd:"" help:"Give a variable of a policy another value."`
	Render     policyRender     `cmd:"" help:"Show what a policy watches, and what that yields now."`
	Backtest   policyBacktest   `cmd:"" help:"Show when a policy would have been violated."`
}

type policyArgument struct {
	Policy string `arg:"" complete:"policy" help:"Policy: id, beginning of its id, or name."`
}

// policy finds a policy by its id, the beginning of that, or its name.
func (s *session) policy(named string) (*api.Policy, error) {
	list, err := s.client.Policies(s.ctx, "", "")
	if err != nil {
		return nil, err
	}
	named = bare("policy", named)
	var found []*api.Policy
	for i := range list {
		p := &list[i]
		if p.ID == named || p.Name == named {
			return p, nil
		}
		if isIDPrefix(named) && strings.HasPrefix(p.ID, named) {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return nil, advise(fmt.Errorf("there is no policy %q", named), "See what there is with: littoral get policies -o json")
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%q means %d policies; name one by more of its id", named, len(found))
}

// changedPolicy prints the policy as it is now, or tells people what was done.
func (s *session) changedPolicy(p *api.Policy, done string) error {
	if s.format.structured() || s.wide() {
		now, err := s.policy(p.ID)
		if err != nil {
			return err
		}
		p = now
	}
	s.screen.line("policy %s%s", p.Name, done)
	if shown, err := s.said(p, "policy/"+p.ID); shown || !s.wide() {
		return err
	}
	return s.policyTable([]api.Policy{*p})
}

type policyActivate struct {
	policyArgument
	outputFlag
}

// Help is the long help of policy activate.
func (policyActivate) Help() string { return "Example: littoral policy activate busy-hosts" }

// Run has the policy watched.
func (c *policyActivate) Run(s *session) error { return s.activate(c.Policy, true, " activated") }

type policyDeactivate struct {
	policyArgument
	outputFlag
}

// Help is the long help of policy deactivate.
func (policyDeactivate) Help() string { return "Example: littoral policy deactivate busy-hosts" }

// Run has the policy watched no more.
func (c *policyDeactivate) Run(s *session) error {
	return s.activate(c.Policy, false, " deactivated")
}

func (s *session) activate(named string, active bool, done string) error {
	p, err := s.policy(named)
	if err != nil {
		return err
	}
	if err := s.client.ActivatePolicy(s.ctx, p.ID, active); err != nil {
		return err
	}
	return s.changedPolicy(p, done)
}

type policySet struct {
	policyArgument
	outputFlag
	Settings []string `arg:"" placeholder:"NAME=VALUE" name:"name=value" help:"Such as threshold=0.9."`
}

// Help is the long help of policy set.
func (policySet) Help() string { return "Example: littoral policy set busy-hosts limit=0.8" }

// Run gives variables other values.
func (c *policySet) Run(s *session) error {
	settings, err := parseSettings(c.Settings)
	if err != nil {
		return err
	}
	p, err := s.policy(c.Policy)
	if err != nil {
		return err
	}
	done, sign := "", ":"
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		value := settings[name]
		if err := s.client.SetVariable(s.ctx, p.ID, name, value); err != nil {
			return err
		}
		done += fmt.Sprintf("%s %s is %s", sign, name, value)
		sign = ","
	}
	return s.changedPolicy(p, done)
}

type policyRender struct {
	policyArgument
	outputFlag
}

// Help is the long help of policy render.
func (policyRender) Help() string { return "Example: littoral policy render busy-hosts" }

// Run shows the expression of a policy with its variables filled in, and what it yields now.
func (c *policyRender) Run(s *session) error {
	p, err := s.policy(c.Policy)
	if err != nil {
		return err
	}
	shown, err := s.client.RenderPolicy(s.ctx, p.ID)
	if err != nil {
		return err
	}
	if done, err := s.said(shown, "policy/"+p.ID); done {
		return err
	}
	s.fields("", [][2]string{{"Policy", p.Name}, {"Expression", shown.Expr}, {"Limit", shown.ViolatedIf}, {"Now", now(shown)}})
	if s.wide() {
		s.fields("", [][2]string{{"ID", p.ID}, {"Application", strings.TrimSpace(p.Subject.AppName + " " + p.Subject.App)}, {"Variables", variables(p)}})
	}
	for _, sample := range shown.Samples {
		s.fields("  ", [][2]string{{number(&sample.Value), pairs(sample.Labels)}})
	}
	return nil
}

// now says what a policy's expression yields.
func now(shown *api.Shown) string {
	switch {
	case shown.Unavailable != "":
		return "unknown: " + shown.Unavailable
	case shown.Series == nil || *shown.Series == 0:
		return "no series"
	}
	return fmt.Sprintf("%s at worst, %d of %d series violate it", number(shown.Value), *shown.Violating, *shown.Series)
}

type policyBacktest struct {
	policyArgument
	Since time.Duration `default:"24h" help:"How far back."`
	outputFlag
}

// Help is the long help of policy backtest.
func (policyBacktest) Help() string { return "Example: littoral policy backtest busy-hosts --since 6h" }

// Run shows when a policy would have been violated.
func (c *policyBacktest) Run(s *session) error {
	if c.Since <= 0 {
		return usagef("--since must be more than 0, not %s", c.Since)
	}
	p, err := s.policy(c.Policy)
	if err != nil {
		return err
	}
	to := time.Now() // the telemetry's clock, not that of the ages
	past, err := s.client.BacktestPolicy(s.ctx, p.ID, to.Add(-c.Since), to)
	if err != nil {
		return err
	}
	if done, err := s.said(past, "policy/"+p.ID); done {
		return err
	}
	if len(past.Episodes) == 0 {
		s.text("It would not have been violated in the last %s (%d evaluations).", c.Since, past.Evaluations)
		return nil
	}
	rows := make([][]string, len(past.Episodes))
	for i, e := range past.Episodes {
		rows[i] = []string{s.at(e.FiredAt), zoned(e.From), zoned(e.To), span(e.To.Sub(e.From)), number(e.Peak), pairs(e.Labels)}
	}
	t := s.newCut("FIRED", "+FROM", "+TO", "LASTED", "WORST", "SERIES")
	if err := t.write(rows...); err != nil || past.Forecast == nil {
		return err
	}
	f := past.Forecast
	s.text("Looking %s ahead: %d of %d violations known earlier (%s in the median), %d alerts in vain, %d still open.",
		f.Ahead, f.Earlier, f.Violations, span(time.Duration(f.SecondsEarlier*float64(time.Second))), f.InVain, f.Open)
	return nil
}

// podsOf are lines about the pods of an application that telemetry knows, by CLUSTER/NODE/COMPONENT. Without telemetry there are none.
func (s *session) podsOf(a *api.Application) (map[string][]string, error) {
	found := map[string][]string{}
	taxonomy, err := s.client.Taxonomy(s.ctx)
	switch {
	case s.ctx.Err() != nil:
		return nil, s.ctx.Err()
	case err != nil:
		fmt.Fprintf(s.err, "littoral: pods are not shown: %s\n", printable(err.Error()))
		return found, nil
	}
	for agent, c := range taxonomy.Cluster {
		for at, n := range c.Node {
			for id, pod := range n.Pod {
				for _, w := range pod.Workload {
					if w.App == a.ID {
						key := cmp.Or(c.Name, agent) + "/" + cmp.Or(n.Name, at) + "/" + w.Component
						found[key] = append(found[key], podLine(id, pod))
					}
				}
			}
		}
	}
	for _, lines := range found {
		slices.Sort(lines)
	}
	return found, nil
}

func podLine(id string, pod api.Pod) string {
	_, name, both := strings.Cut(pod.Name, "__")
	if !both {
		name = cmp.Or(pod.Name, id)
	}
	text := "pod " + name + ": " + cmp.Or(pod.Status, "Unknown")
	var cores, memory float64
	for _, c := range pod.Container {
		if c.CPU != nil {
			cores += *c.CPU
		}
		if c.Memory != nil {
			memory += *c.Memory
		}
	}
	if cores > 0 {
		text += fmt.Sprintf(", %.2f cores", cores)
	}
	if memory > 0 {
		text += ", " + bytesText(&memory)
	}
	return text
}

type treeCommand struct {
	appArgument
	outputFlag
}

// grown is the answer of "tree -o json".
type grown struct {
	Application *api.Application `json:"application"`
	Policies    []api.Policy     `json:"policies"`
	Links       []api.LinkSide   `json:"links,omitempty"`
}

// Help is the long help of tree.
func (treeCommand) Help() string { return "Example: littoral tree shop" }

// Run shows an application, its components, where they are, their objects and the policies about them, with what is wrong.
func (c *treeCommand) Run(s *session) error {
	a, err := s.application(s.ctx, c.ID)
	if err != nil {
		return err
	}
	policies, err := s.client.Policies(s.ctx, a.ID, "")
	if err != nil {
		return err
	}
	links, err := s.client.Links(s.ctx, a.ID)
	if err != nil && problem.KindOf(err) != problem.NotFound { // an older server has none
		return err
	}
	if done, err := s.said(grown{a, policies, links}, "app/"+a.ID); done {
		return err
	}
	pods, err := s.podsOf(a)
	if err != nil {
		return err
	}
	line := func(depth int, text string) {
		fmt.Fprintln(s.out, s.states(s.fit(strings.Repeat("  ", depth)+printable(text))))
	}
	about := func(depth int, component string) {
		for i := range policies {
			if p := &policies[i]; strings.Trim(p.Subject.Component, "*") == component {
				line(depth, "policy "+strings.TrimSpace(watches(p)+" "+limit(p))+": "+p.Status.Phase)
			}
		}
	}
	title := a.Name + ": " + a.Status
	if a.Message != "" {
		title += ", " + a.Message
	}
	line(0, title)
	about(1, "")
	jobs := a.Components()
	for i := range jobs {
		j := &jobs[i]
		state := j.State
		if j.Available() {
			state = api.StatusAvailable
		}
		line(1, j.Component()+": "+state)
		if at := j.Targets.String(); at != "" {
			line(2, "on "+at+" ("+j.Orchestrator+")")
		} else {
			line(2, "without a place")
		}
		for _, o := range j.Instruction.Contents {
			line(3, "object "+o.Name)
		}
		for _, text := range linksOf(links, j.Instruction.ComponentName, j.Targets.Cluster) {
			line(3, text)
		}
		for _, pod := range pods[j.Targets.Cluster+"/"+j.Targets.Node+"/"+j.Instruction.ComponentName] {
			line(3, pod)
		}
		for _, x := range j.Resource.Conditions {
			if x.Status == "True" && x.Type != api.StatusAvailable && x.Message != "" {
				line(3, x.Type+": "+x.Message)
			}
		}
		about(2, j.Instruction.ComponentName)
	}
	return nil
}

// linksOf says which links a component in a cluster has, to whom, and the state of the side that is not ready, if any.
func linksOf(sides []api.LinkSide, component, cluster string) []string {
	state := func(clusters ...string) string {
		for i := range sides {
			if side := &sides[i]; slices.Contains(clusters, side.Cluster) && side.State != "Ready" {
				return strings.TrimSuffix(side.State+" in "+side.Cluster+", "+side.Message, ", ")
			}
		}
		return "Ready"
	}
	var out []string
	for i := range sides {
		if sides[i].Cluster != cluster {
			continue
		}
		for k := range sides[i].Links {
			l := &sides[i].Links[k]
			for _, server := range l.Servers {
				switch {
				case l.Cluster == cluster && l.Calls(component):
					out = append(out, fmt.Sprintf("link to %s of %s in %s: %s", l.Service, server.Component, server.Cluster,
						state(cluster, server.Cluster)))
				case server.Component == component && server.Cluster == cluster:
					out = append(out, fmt.Sprintf("link from %s in %s to %s: %s", strings.Join(l.Clients, ", "), l.Cluster, l.Service,
						state(cluster, l.Cluster)))
				}
			}
		}
	}
	return out
}
