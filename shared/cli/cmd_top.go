package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/label"
)

type topCommand struct {
	Nodes topNodes `cmd:"" aliases:"node" help:"Show what nodes use, the busiest first."`
	Apps  topApps  `cmd:"" aliases:"app" help:"Show what the nodes of components use, and how near policies are to their limits."`
}

// Help is the long help of top.
func (topCommand) Help() string { return "Examples: littoral top nodes -w; littoral top apps" }

type topNodes struct {
	listFlags
	placeFlags
}

// Run lists nodes by what they use of their processors. The column TREND draws the last hour; where telemetry has no course, what was
// seen since the beginning.
func (c *topNodes) Run(s *session) error {
	seen, past, asked := map[string][]float64{}, map[string][]float64{}, time.Time{}
	host := func(labels map[string]string) string { return labels[label.Host] }
	l := listing[nodeItem]{
		watch: c.Watch, what: "nodes", kind: "node",
		fetch: func(ctx context.Context) ([]nodeItem, error) {
			list, err := (&getNodes{placeFlags: c.placeFlags}).fetch(ctx, s)
			slices.SortStableFunc(list, func(a, b nodeItem) int { return -cmp.Compare(used(a.Node.Dynamic.CPU), used(b.Node.Dynamic.CPU)) })
			for i := range list {
				key := list[i].Cluster + "/" + list[i].Name
				seen[key] = append(seen[key], used(list[i].Node.Dynamic.CPU))
			}
			if !s.format.structured() && time.Since(asked) >= trendEvery {
				asked = time.Now()
				past = courses(ctx, host, func(ctx context.Context) (*api.Courses, error) {
					return s.client.Series(ctx, cpuOfNodes, trendSince.String(), trendStep)
				})()
			}
			return list, err
		},
		key:    func(n nodeItem) string { return n.Cluster + "/" + n.Name },
		header: []string{"CLUSTER", "NODE", "STATE", "CPU", "", "MEMORY", "", "WATTS", "+CORES", "+RAM", "+SEEN", "TREND"},
		row: func(n nodeItem) []string {
			d := n.Node.Dynamic
			course := past[n.Node.UUID]
			if len(course) < 2 {
				course = seen[n.Cluster+"/"+n.Name]
			}
			return []string{
				n.Cluster, n.Name, n.State, percent(d.CPU), gauge(d.CPU), percent(d.Memory), gauge(d.Memory), watts(d.Power),
				number(n.Node.Static.Cores), bytesText(n.Node.Static.Memory), s.seen(&n.Node), sparkline(course),
			}
		},
		gone: func(n *nodeItem) { n.State = gone },
	}
	return l.run(s)
}

// What TREND draws: a column for each step.
const (
	cpuOfNodes = `100 * (1 - avg by (icos_host_id) (irate(node_cpu_seconds_total{mode="idle"}[5m])))`
	trendSince = time.Hour
	trendStep  = trendSince / sparklineWidth
	trendEvery = 15 * time.Second // with -w
	trendWait  = time.Second      // that a table waits for it
)

// courses asks telemetry while other things are asked, and finds each course by the key of its labels. The function that it returns has
// what is known by then: a site without telemetry, or a caller who may not see it, has none.
func courses[K comparable](
	ctx context.Context, key func(labels map[string]string) K, ask func(context.Context) (*api.Courses, error),
) func() map[K][]float64 {
	answer := make(chan map[K][]float64, 1)
	ctx, stop := context.WithTimeout(ctx, trendWait)
	go func() {
		found := map[K][]float64{}
		if told, err := ask(ctx); err == nil {
			for _, course := range told.Series {
				var values []float64
				for _, point := range course.Points {
					if point[1] != nil {
						values = append(values, *point[1])
					}
				}
				found[key(course.Labels)] = values
			}
		}
		answer <- found
	}()
	return func() map[K][]float64 {
		defer stop()
		return <-answer
	}
}

func used(v *float64) float64 {
	if v == nil {
		return -1
	}
	return *v
}

const gaugeWidth = 5

// gauge draws a percentage; "" when it is not known.
func gauge(percent *float64) string {
	if percent == nil {
		return ""
	}
	full := min(max(int(*percent/100*gaugeWidth+0.5), 0), gaugeWidth)
	return strings.Repeat("█", full) + strings.Repeat("░", gaugeWidth-full)
}

const sparklineWidth = 12

// sparkline draws the last of some percentages.
func sparkline(percents []float64) string {
	steps := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, p := range percents[max(0, len(percents)-sparklineWidth):] {
		b.WriteRune(steps[min(max(int(p/100*float64(len(steps))), 0), len(steps)-1)])
	}
	return b.String()
}

type topApps struct {
	App string `arg:"" optional:"" complete:"app" help:"Only this application: id, beginning of its id, or name."`
	outputFlag
}

// appUse is one element of "top apps -o json".
type appUse struct {
	App       string     `json:"app"`
	Component string     `json:"component"`
	Node      string     `json:"node"`
	CPU       *float64   `json:"cpuUsagePercent"`         // of the node
	Memory    *float64   `json:"memoryUsagePercent"`      // of the node
	Trend     []float64  `json:"cpuCoresTrend,omitempty"` // of the component itself, in the last hour
	Policies  []nearness `json:"policies"`
}

// nearness is how near a policy is to its limit.
type nearness struct {
	Policy string   `json:"policy"`
	Now    *float64 `json:"now"` // the worst value of what it watches
	Limit  string   `json:"limit"`
}

// String is the value, what violates it, and the policy; of one that watches no value its name.
func (n nearness) String() string {
	if n.Limit == "" {
		return n.Policy
	}
	return number(n.Now) + " (limit " + n.Limit + ") " + n.Policy
}

// Run lists components with the use of their nodes, and the values of their policies.
func (c *topApps) Run(s *session) error {
	filter := api.Filter{Light: true}
	if c.App != "" {
		a, err := s.application(s.ctx, c.App)
		if err != nil {
			return err
		}
		filter.App = a.ID
	}
	apps, err := s.client.Applications(s.ctx, filter)
	if err != nil {
		return err
	}
	asked := courses(s.ctx, partOf, func(ctx context.Context) (*api.Courses, error) {
		return s.client.Usage(ctx, "cpu", filter.App, trendSince.String(), trendStep)
	})
	taxonomy, err := s.taxonomy(s.ctx)
	if err != nil {
		return err
	}
	policies, err := s.client.Policies(s.ctx, filter.App, "")
	if err != nil {
		return err
	}
	list := []appUse{}
	values := s.values(policies)
	nodes := map[api.Target]api.Dynamic{}
	for _, p := range taxonomy.Places() {
		nodes[api.Target{Cluster: p.Cluster, Node: p.Node}] = p.At.Dynamic
	}
	trends := asked()
	for i := range apps {
		list = append(list, uses(&apps[i], nodes, policies, values, trends)...)
	}
	if done, err := s.said(list, namesOf("app", apps, func(a *api.Application) string { return a.ID })...); done {
		return err
	}
	return c.table(s, list)
}

func uses(
	a *api.Application, nodes map[api.Target]api.Dynamic, policies []api.Policy, values map[string]*float64, trends map[part][]float64,
) []appUse {
	var list []appUse
	for _, j := range a.Components() {
		u := appUse{App: a.Name, Component: j.Component(), Node: j.Targets.String(), Policies: []nearness{}}
		at := nodes[api.Target{Cluster: j.Targets.Cluster, Node: j.Targets.Node}]
		u.CPU, u.Memory, u.Trend = at.CPU, at.Memory, trends[part{a.ID, j.Instruction.ComponentName}]
		for i := range policies {
			p := &policies[i]
			if about := strings.Trim(p.Subject.Component, "*"); p.Subject.App == a.ID && (about == "" || about == j.Instruction.ComponentName) {
				u.Policies = append(u.Policies, nearness{watches(p), values[p.ID], limit(p)})
			}
		}
		list = append(list, u)
	}
	return list
}

func (c *topApps) table(s *session, list []appUse) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(s.err, "No components.")
		return err
	}
	var rows [][]string
	head := []string{"APP", "COMPONENT", "NODE", "CPU", "", "MEMORY", "POLICY"}
	known := slices.ContainsFunc(list, func(u appUse) bool { return len(u.Trend) > 0 })
	if known {
		head[4] = "TREND"
	}
	for _, u := range list {
		row := []string{u.App, u.Component, or(u.Node), percent(u.CPU), gauge(u.CPU), percent(u.Memory), "-"}
		if known {
			row[4] = scaled(u.Trend)
		}
		for i, p := range u.Policies {
			if i > 0 {
				row = []string{"", "", "", "", "", "", ""}
			}
			row[6] = p.String()
			rows = append(rows, row)
		}
		if len(u.Policies) == 0 {
			rows = append(rows, row)
		}
	}
	return s.newCut(head...).write(rows...)
}

// part is a component of an application.
type part struct{ app, component string }

func partOf(labels map[string]string) part {
	return part{labels[label.AppInstance], labels[label.AppComponent]}
}

// scaled draws values between 0 and the greatest of them.
func scaled(values []float64) string {
	top := 0.0
	for _, v := range values {
		top = max(top, v)
	}
	percents := make([]float64, len(values))
	for i, v := range values {
		if top > 0 {
			percents[i] = 100 * v / top
		}
	}
	return sparkline(percents)
}

// valuesAtOnce is how many policies are asked about at the same time, and mostValues of how many at all.
const (
	valuesAtOnce = 8
	mostValues   = 64
)

// values are the present values of what policies watch, by id of the policy. One whose value cannot be had, or that the caller may not
// ask for, has none.
func (s *session) values(policies []api.Policy) map[string]*float64 {
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	var mu sync.Mutex
	var asked sync.WaitGroup
	found := map[string]*float64{}
	turns := make(chan struct{}, valuesAtOnce)
	for i := range policies[:min(len(policies), mostValues)] {
		if policies[i].Status.Phase == "inactive" {
			continue
		}
		id := policies[i].ID
		asked.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			if shown, err := s.client.RenderPolicy(ctx, id); err == nil {
				mu.Lock()
				defer mu.Unlock()
				found[id] = shown.Value
			}
		})
	}
	asked.Wait()
	return found
}
