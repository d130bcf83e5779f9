package export

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/acm"
	"github.com/littoral-project/littoral/shared/codecoapp"
	"github.com/littoral-project/littoral/shared/mdm/connect"
	"github.com/littoral-project/littoral/shared/netma/links"
	"github.com/littoral-project/littoral/shared/netma/view"
	"github.com/littoral-project/littoral/shared/otlp"
	"github.com/littoral-project/littoral/shared/paging"
	"github.com/littoral-project/littoral/shared/pdlc/awareness"
	"github.com/littoral-project/littoral/shared/store"
)

// Bounds of one answer.
const (
	mostApps   = 1000             // the oldest
	mostPlaces = 1000             // up to which the ways between all of them are found out
	counts     = 15 * time.Minute // what was observed
)

// samples collects series that may be true.
type samples struct {
	all     []otlp.Sample
	by      map[string]*Metric
	refused map[string]float64
}

func newSamples() *samples {
	s := &samples{by: map[string]*Metric{}, refused: map[string]float64{}}
	for i := range Metrics {
		s.by[Metrics[i].Name] = &Metrics[i]
	}
	return s
}

// add adds a series with the labels that its metric has; nil is not known.
func (s *samples) add(name string, v *float64, labels ...string) {
	if v == nil {
		return
	}
	m := s.by[name]
	if !m.admits(*v) {
		s.refused[name]++
		return
	}
	with := map[string]string{}
	for i, l := range m.Labels {
		with[l] = labels[i]
	}
	s.all = append(s.all, otlp.Sample{Name: name, Help: m.Help, Labels: with, Value: *v})
}

// Samples returns all series. views keeps the network while it stays the same.
func Samples(ctx context.Context, q store.Querier, views *view.Cache) ([]otlp.Sample, error) {
	s := newSamples()
	table, err := connect.Nodes(ctx, q)
	if err != nil {
		return nil, err
	}
	seen, err := observed(ctx, q)
	if err != nil {
		return nil, err
	}
	portable := map[[2]string]*float64{}
	for i := range table {
		portable[[2]string{table[i].Cluster, table[i].Name}] = number(table[i].Portability)
	}
	for _, part := range []func() error{
		func() error { return s.apps(ctx, q, portable) },
		func() error { return s.nodes(ctx, q) },
		func() error { s.metadata(table); return s.sizes(ctx, q, table) },
		func() error { return s.network(ctx, q, views, seen) },
		func() error { s.observed(seen); return nil },
	} {
		if err := part(); err != nil {
			return nil, err
		}
	}
	for name, n := range s.refused {
		s.all = append(s.all, otlp.Sample{
			Name: Refused, Help: "Values that could not be true and were left out", Labels: map[string]string{"metric": name}, Value: n,
		})
	}
	return s.all, nil
}

func (s *samples) apps(ctx context.Context, q store.Querier, portable map[[2]string]*float64) error {
	apps, err := acm.List(ctx, q, acm.Key{}, paging.Page{Limit: mostApps})
	if err != nil {
		return err
	}
	all, err := acm.StatusesOf(ctx, q, apps)
	if err != nil {
		return err
	}
	for i, app := range apps {
		of := []string{app.Key.Namespace, app.Key.Name}
		l := codecoapp.LevelsOf([]byte(app.Application.Descriptor))
		s.add("codeco_app_qos_level", l.QoS, of...)
		s.add("codeco_app_security_level", l.Security, of...)
		s.add("codeco_app_compliance_level", l.Compliance, of...)
		s.add("codeco_app_failure_tolerance_percent", l.FailureTolerance, of...)
		s.add("codeco_app_energy_limit_percent", l.EnergyLimit, of...)
		parsed, err := app.Application.Parsed()
		if err != nil {
			return err
		}
		var cpu, memory *float64
		for i := range parsed.Components {
			need := &parsed.Components[i].Requirements
			sum(&cpu, float64(need.CPUMilli)/1000)
			sum(&memory, float64(need.MemoryBytes))
		}
		s.add("codeco_app_requested_cpu_cores", cpu, of...)
		s.add("codeco_app_requested_memory_bytes", memory, of...)
		status := &all[i]
		s.add("codeco_app_cpu_cores", number(status.AppMetrics.AvgAppCPU), of...)
		s.add("codeco_app_memory_bytes", number(status.AppMetrics.AvgAppMemory), of...)
		var least *float64
		known := true
		for _, m := range status.AppMetrics.ServiceMetrics {
			p := portable[[2]string{m.ClusterName, m.NodeName}]
			known = known && p != nil
			if p != nil && (least == nil || *p < *least) {
				least = p
			}
		}
		if known {
			s.add("codeco_app_portability_percent", least, of...)
		}
	}
	return nil
}

// sum adds what is asked for; what asks for nothing says nothing.
func sum(to **float64, v float64) {
	if v > 0 {
		if *to == nil {
			*to = new(float64)
		}
		**to += v
	}
}

// number reads a text that one of ours wrote; nil without one.
func number(text string) *float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil
	}
	return &v
}

const selectNodes = `with zones as (
	select zone_id, (select count(*) from mec_users u where u.zone_id = z.zone_id) as users from (select distinct zone_id from mec_access_points) z
)
select t.cluster, t.node, t.cores * t.cpu_percent / 100 as cores, t.used_memory as memory, t.watts, z.users::float8 as users,
	coalesce(t.labels ->> 'topology.kubernetes.io/zone', t.labels ->> 'zone', '') as zone,
	t.body -> 'location' ->> 'latitude' as latitude, t.body -> 'location' ->> 'longitude' as longitude
from topology_nodes t left join zones z on z.zone_id = coalesce(t.labels ->> 'topology.kubernetes.io/zone', t.labels ->> 'zone')
order by 1, 2`

func (s *samples) nodes(ctx context.Context, q store.Querier) error {
	type row struct {
		Cluster, Node               string
		Cores, Memory, Watts, Users *float64
		Zone                        string
		Latitude, Longitude         *string
	}
	rows, err := store.Collect(ctx, q, "read nodes", pgx.RowToStructByPos[row], selectNodes)
	if err != nil {
		return err
	}
	for _, r := range rows {
		of := []string{r.Cluster, r.Node}
		s.add("codeco_node_cpu_cores", r.Cores, of...)
		s.add("codeco_node_memory_bytes", r.Memory, of...)
		s.add("codeco_node_energy_watts", r.Watts, of...)
		s.add("codeco_node_users", r.Users, of...)
		if r.Latitude != nil && r.Longitude != nil {
			s.add("codeco_node_latitude_degrees", number(*r.Latitude), of...)
			s.add("codeco_node_longitude_degrees", number(*r.Longitude), of...)
		}
		if r.Zone != "" {
			one := 1.0
			s.add("codeco_node_zone", &one, r.Cluster, r.Node, r.Zone)
		}
	}
	return nil
}

// levels are the words of connect.Node.
var levels = map[string]float64{"High": 5, "Medium": 3, "Low": 1}

func (s *samples) metadata(table []connect.Node) {
	for i := range table {
		n := &table[i]
		of := []string{n.Cluster, n.Name}
		if age, err := time.ParseDuration(n.Freshness); err == nil {
			seconds := age.Seconds()
			s.add("codeco_node_freshness_seconds", &seconds, of...)
		}
		if level, known := levels[n.Compliance]; known {
			s.add("codeco_node_compliance_level", &level, of...)
		}
		s.add("codeco_node_portability_percent", number(n.Portability), of...)
	}
}

// What nobody says the size of has none: the sum over data sets of which one says nothing is not known either.
const selectSizes = `with used as (
	select c.edf_id as component, d.type, mdm_number(e.properties -> 'size') as size
	from mdm_entities c join mdm_relations d on d.source = c.edf_id and d.type in ('READS', 'WRITES') join mdm_entities e on e.edf_id = d.target
	where c.type = 'component'
)
select '', n.identifier, u.type, case when count(*) = count(u.size) then sum(u.size) end
from used u join mdm_relations r on r.source = u.component and r.type = 'RUNS_ON' join mdm_entities n on n.edf_id = r.target
group by n.identifier, u.type
union all
select a.namespace, a.name, u.type, case when count(*) = count(u.size) then sum(u.size) end
from used u join mdm_relations r on r.source = u.component and r.type = 'PART_OF' join mdm_entities p on p.edf_id = r.target
join codeco_apps a on a.application_id::text = p.identifier
group by a.namespace, a.name, u.type`

func (s *samples) sizes(ctx context.Context, q store.Querier, table []connect.Node) error {
	type row struct {
		Namespace, Name, Type string
		Size                  *float64
	}
	rows, err := store.Collect(ctx, q, "read sizes of data sets", pgx.RowToStructByPos[row], selectSizes)
	if err != nil {
		return err
	}
	by := make(map[string]*connect.Node, len(table))
	for i := range table {
		by[table[i].Cluster+"/"+table[i].Name] = &table[i]
	}
	for _, r := range rows {
		direction := map[string]string{"READS": "input", "WRITES": "output"}[r.Type]
		if r.Namespace != "" {
			s.add("codeco_app_"+direction+"_data_bytes", r.Size, r.Namespace, r.Name)
		} else if n, known := by[r.Name]; known {
			s.add("codeco_node_"+direction+"_data_bytes", r.Size, n.Cluster, n.Name)
		}
	}
	return nil
}

// network tells of links and of the ways between nodes. Of links it is the averages that PDLC keeps; what was measured last of one that it
// has not observed yet.
func (s *samples) network(ctx context.Context, q store.Querier, views *view.Cache, seen []awareness.Node) error {
	all, err := links.All(ctx, q)
	if err != nil {
		return err
	}
	averages := map[[2]string]awareness.Link{}
	for i := range seen {
		for to, l := range seen[i].Links {
			averages[[2]string{seen[i].Name, to}] = l
		}
	}
	for i := range all {
		m := &all[i]
		average := averages[[2]string{m.Source, m.Target}]
		s.add("codeco_link_failure_ratio", cmp.Or(average.Failure, awareness.FailureOf(m, time.Now())), m.Source, m.Target)
		if time.Since(m.MeasuredAt) <= links.Fresh {
			s.add("codeco_link_energy_watts", cmp.Or(average.Energy, m.Energy), m.Source, m.Target)
		}
	}
	v, err := views.Get(ctx, q)
	if err != nil || len(v.PIDs) > mostPlaces {
		return err
	}
	hops, _ := view.MetricOf("hopcount")
	cost := v.Costs(hops)
	for i := range v.PIDs {
		if v.PIDs[i].Cluster == "" {
			continue
		}
		var length, reached float64
		for k := range v.PIDs {
			if n, known := cost(i, k); known && i != k {
				length, reached = length+n, reached+1
			}
		}
		if reached > 0 {
			length /= reached
			s.add("codeco_node_path_length", &length, v.PIDs[i].Cluster, v.PIDs[i].Node)
		}
	}
	return nil
}

// observed is what the context awareness of PDLC keeps of nodes; what is old counts no more.
func observed(ctx context.Context, q store.Querier) ([]awareness.Node, error) {
	nodes, err := awareness.Nodes(ctx, q)
	return slices.DeleteFunc(nodes, func(n awareness.Node) bool { return time.Since(n.At) > counts }), err
}

// observed tells of nodes what is observed of them, among it moving averages.
func (s *samples) observed(seen []awareness.Node) {
	for i := range seen {
		n := &seen[i]
		for metric, of := range map[string]string{
			"codeco_node_failure_ratio":                     "node_failure",
			"codeco_node_net_failure":                       "link_failure",
			"codeco_node_egress_bandwidth_bits_per_second":  "ebw",
			"codeco_node_ingress_bandwidth_bits_per_second": "ibw",
			"codeco_node_degree":                            "degree",
			"codeco_node_latency_seconds":                   "latency",
		} {
			if v, known := n.Metrics[of]; known {
				s.add(metric, &v, n.Cluster, n.Name)
			}
		}
	}
}
