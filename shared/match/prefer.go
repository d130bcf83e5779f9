package match

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/mec"
	"github.com/littoral-project/littoral/shared/pdlc/advice"
	"github.com/littoral-project/littoral/shared/pdlc/awareness"
	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/costs"
	"github.com/littoral-project/littoral/shared/topology"
)

// What a preference is worth at its best node, in points: as much as an affinity to a component next to it.
const preferred = placement.DefaultAffinityWeight

// surroundings are what makes nodes better for components: where their data is, and where their users are.
type surroundings struct {
	data   map[string][]holder                            // by data set
	reads  map[uuid.UUID][][2]string                      // by application: component and data set, as the metadata graph says it
	advice map[uuid.UUID]map[string]advice.Recommendation // by application and component
	net    map[uuid.UUID]map[string]map[string]float64    // by application, component and node: recommendation less cost
	shares map[string]map[[2]string]float64               // by profile: of each node
	stands map[[2]string]mec.Point                        // by cluster and node; nil until somebody asks
	users  map[string][]crowd                             // by zone
	rtt    map[[2]string]float64                          // ms, between nodes, as measured
}

// holder is a place that has a data set: a node, or any node of a cluster.
type holder struct {
	Set     string
	Size    float64 // bytes; 0 if nobody says it
	Cluster string
	Node    string

	orchestrator string
}

// crowd is how many users are at a place.
type crowd struct {
	At    mec.Point
	Users float64
}

const (
	selectHolders = `select d.identifier, coalesce(mdm_number(d.properties -> 'size'), 0)::float8,
	case n.type when 'cluster' then n.identifier else split_part(n.identifier, '/', 1) end,
	case n.type when 'cluster' then '' else split_part(n.identifier, '/', 2) end
from mdm_entities d join mdm_relations r on r.source = d.edf_id and r.type = 'STORED_ON'
join mdm_entities n on n.edf_id = r.target and n.type in ('compute', 'cluster')
where d.identifier = any($1) order by 1, 3, 4`

	selectReads = `select split_part(c.identifier, '/', 2), d.identifier
from mdm_entities c join mdm_relations r on r.source = c.edf_id and r.type in ('READS', 'WRITES')
join mdm_entities d on d.edf_id = r.target
where c.type = 'component' and c.identifier like $1 || '/%' order by 1, 2`

	selectLocations = `select cluster, node, body -> 'location' from topology_nodes where body -> 'location' is not null`

	selectRTT = `select source, target, rtt from link_measurements where rtt is not null and measured_at > now() - interval '30 minutes'
and (source = any($1) or target = any($1))`
)

// readAround reads what an application's places depend on beside the nodes: the network of its channels, its data and its users.
func (inv *inventory) readAround(ctx context.Context, q store.Querier, app *appmodel.Application, list []part) error {
	if err := inv.readNetwork(ctx, q, app); err != nil {
		return err
	}
	if inv.around.data == nil {
		inv.around = surroundings{
			data:   map[string][]holder{},
			reads:  map[uuid.UUID][][2]string{},
			advice: map[uuid.UUID]map[string]advice.Recommendation{},
			net:    map[uuid.UUID]map[string]map[string]float64{},
			shares: map[string]map[[2]string]float64{},
			users:  map[string][]crowd{},
			rtt:    map[[2]string]float64{},
		}
	}
	if err := inv.around.readReads(ctx, q, list); err != nil {
		return err
	}
	if err := inv.readData(ctx, q, app, list); err != nil {
		return err
	}
	if err := inv.around.readAdvice(ctx, q, instanceOf(list)); err != nil {
		return err
	}
	if err := inv.around.readCosts(ctx, q, instanceOf(list)); err != nil {
		return err
	}
	if err := inv.around.readShares(ctx, q, app.Profile); err != nil {
		return err
	}
	return inv.around.readUsers(ctx, q, app)
}

// readAdvice reads what a model recommends for an application.
func (s *surroundings) readAdvice(ctx context.Context, q store.Querier, id uuid.UUID) error {
	if _, known := s.advice[id]; known || id == uuid.Nil {
		return nil
	}
	all, err := advice.Recommendations(ctx, q, id)
	s.advice[id] = map[string]advice.Recommendation{}
	for _, r := range all {
		s.advice[id][r.Component] = r
	}
	return err
}

// advised is what each node is worth for a component by the agent that recommends.
func (inv *inventory) advised(c *appmodel.Component, instance uuid.UUID) (about string, points []float64) {
	r, known := inv.around.advice[instance][c.Name]
	if !known {
		return "", nil
	}
	points = make([]float64, len(inv.places))
	for i := range inv.places {
		points[i] = preferred * max(0, min(1, r.Nodes[inv.places[i].Cluster+"/"+inv.places[i].Node]))
	}
	return "recommended by " + r.Agent, points
}

// readCosts reads what others say that nodes cost an application, and how much they recommend them.
func (s *surroundings) readCosts(ctx context.Context, q store.Querier, id uuid.UUID) error {
	if _, known := s.net[id]; known || id == uuid.Nil {
		return nil
	}
	all, err := costs.Of(ctx, q, id)
	s.net[id] = map[string]map[string]float64{}
	for _, c := range all {
		if s.net[id][c.Component] == nil {
			s.net[id][c.Component] = map[string]float64{}
		}
		s.net[id][c.Component][c.Node] += c.Recommendation - c.Cost
	}
	return err
}

// priced is what each node is worth for a component by its costs and recommendations. Their unit is that of who says them, so that
// they count between the worst node and the best; a node of which nothing is said has neither.
func (inv *inventory) priced(c *appmodel.Component, instance uuid.UUID) (about string, points []float64) {
	known := inv.around.net[instance][c.Name]
	if len(known) == 0 || len(inv.places) == 0 {
		return "", nil
	}
	points = make([]float64, len(inv.places))
	best := 0
	for i := range inv.places {
		points[i] = known[inv.places[i].Node]
		if points[i] > points[best] {
			best = i
		}
	}
	worst, span := slices.Min(points), points[best]-slices.Min(points)
	if span == 0 {
		return "all nodes cost the same", make([]float64, len(points))
	}
	about = fmt.Sprintf("recommendations less costs are between %.4g and %.4g (%s)", worst, points[best], inv.places[best].Node)
	for i := range points {
		points[i] = preferred * (points[i] - worst) / span
	}
	return about, points
}

// readShares reads what each node is worth for a profile.
func (s *surroundings) readShares(ctx context.Context, q store.Querier, profile string) error {
	if _, known := s.shares[profile]; known || profile == "" {
		return nil
	}
	scores, err := awareness.Scores(ctx, q, profile)
	s.shares[profile] = map[[2]string]float64{}
	for _, one := range scores {
		s.shares[profile][[2]string{one.Cluster, one.Node}] = one.Share
	}
	return err
}

// forProfile is what each node is worth for the profile of an application.
func (inv *inventory) forProfile(profile string) (about string, points []float64) {
	if profile == "" {
		return "", nil
	}
	points = make([]float64, len(inv.places))
	shares := inv.around.shares[profile]
	if len(shares) == 0 {
		return "there are no scores for " + profile, points
	}
	for i := range inv.places {
		points[i] = preferred * shares[[2]string{inv.places[i].Cluster, inv.places[i].Node}]
	}
	return profile, points
}

// readReads reads which data the components of a running application use, as others have published it.
func (s *surroundings) readReads(ctx context.Context, q store.Querier, list []part) error {
	id := instanceOf(list)
	if _, known := s.reads[id]; known || id == uuid.Nil {
		return nil
	}
	type read struct{ Component, Set string }
	all, err := store.Collect(ctx, q, "read what components read", pgx.RowToStructByPos[read], selectReads, id.String())
	s.reads[id] = [][2]string{}
	for _, r := range all {
		s.reads[id] = append(s.reads[id], [2]string{r.Component, r.Set})
	}
	return err
}

// setsOf are the data sets of a component: those that its description names, and those of the metadata graph.
func (s *surroundings) setsOf(c *appmodel.Component, instance uuid.UUID) []string {
	sets := slices.Clone(c.Near.Data)
	for _, r := range s.reads[instance] {
		if r[0] == c.Name {
			sets = append(sets, r[1])
		}
	}
	slices.Sort(sets)
	return slices.Compact(sets)
}

func instanceOf(list []part) uuid.UUID {
	for i := range list {
		if list[i].instance != uuid.Nil {
			return list[i].instance
		}
	}
	return uuid.Nil
}

func (inv *inventory) readData(ctx context.Context, q store.Querier, app *appmodel.Application, list []part) error {
	s := &inv.around
	var sets, at []string
	for i := range app.Components {
		for _, set := range s.setsOf(&app.Components[i], instanceOf(list)) {
			if _, known := s.data[set]; !known {
				s.data[set] = []holder{}
				sets = append(sets, set)
			}
		}
	}
	if len(sets) == 0 {
		return nil
	}
	all, err := store.Collect(ctx, q, "read where data is", func(row pgx.CollectableRow) (h holder, err error) {
		err = row.Scan(&h.Set, &h.Size, &h.Cluster, &h.Node)
		return h, err
	}, selectHolders, sets)
	if err != nil {
		return err
	}
	orchestrators := map[string]string{} // of clusters
	for i := range inv.places {
		orchestrators[inv.places[i].Cluster] = inv.places[i].In.Orchestrator()
	}
	for _, h := range all {
		h.orchestrator = orchestrators[h.Cluster]
		s.data[h.Set] = append(s.data[h.Set], h)
		if h.Node != "" {
			at = append(at, h.Node)
		}
	}
	type measured struct {
		Source, Target string
		RTT            float64
	}
	times, err := store.Collect(ctx, q, "read round trips", pgx.RowToStructByPos[measured], selectRTT, at)
	for _, m := range times {
		s.rtt[pairOf(m.Source, m.Target)] = m.RTT
	}
	return err
}

func (s *surroundings) readUsers(ctx context.Context, q store.Querier, app *appmodel.Application) error {
	var zones []string
	for i := range app.Components {
		for _, zone := range app.Components[i].Near.Users {
			if _, known := s.users[zone]; !known {
				s.users[zone] = []crowd{}
				zones = append(zones, zone)
			}
		}
	}
	if len(zones) == 0 {
		return nil
	}
	crowds, err := mec.Crowds(ctx, q, zones)
	if err != nil {
		return err
	}
	for _, c := range crowds {
		s.users[c.Zone] = append(s.users[c.Zone], crowd{c.Point, c.Users})
	}
	if s.stands != nil {
		return nil
	}
	s.stands = map[[2]string]mec.Point{}
	type standing struct {
		Cluster, Node string
		Location      topology.Location
	}
	all, err := store.Collect(ctx, q, "read where nodes are", pgx.RowToStructByPos[standing], selectLocations)
	for _, n := range all {
		latitude, one := n.Location.Latitude.Get()
		longitude, other := n.Location.Longitude.Get()
		if one && other {
			s.stands[[2]string{n.Cluster, n.Node}] = mec.Point{Latitude: latitude, Longitude: longitude}
		}
	}
	return err
}

// prefer adds to the problem what makes nodes better for the parts of an application. prefix stands before their ids.
func (inv *inventory) prefer(problem *placement.Problem, app *appmodel.Application, list []part, prefix string) {
	for i := range app.Components {
		c := &app.Components[i]
		var ids []string
		for _, p := range list {
			if p.component.Name == c.Name && !p.fixed {
				ids = append(ids, prefix+p.id)
			}
		}
		if len(ids) == 0 {
			continue
		}
		add := func(name, about string, points []float64) {
			if about != "" {
				problem.Preferences = append(problem.Preferences, placement.Preference{Name: name, About: about, Components: ids, Points: points})
			}
		}
		about, points := inv.forProfile(app.Profile)
		add("profile", about, points)
		about, points = inv.advised(c, instanceOf(list))
		add("recommendation", about, points)
		about, points = inv.priced(c, instanceOf(list))
		add("cost", about, points)
		about, points = inv.nearData(c, instanceOf(list))
		add("data", about, points)
		about, points = inv.nearUsers(c)
		add("users", about, points)
	}
}

// nearData is what each node is worth for the data that a component uses: for each data set the nearest copy counts, in
// proportion to its size.
func (inv *inventory) nearData(c *appmodel.Component, instance uuid.UUID) (about string, points []float64) {
	points = make([]float64, len(inv.places))
	var said []string
	whole := 0.0
	for _, set := range inv.around.setsOf(c, instance) {
		holders := inv.around.data[set]
		if len(holders) == 0 {
			said = append(said, set+" is nowhere that is known")
			continue
		}
		size := max(holders[0].Size, 1)
		whole += size
		var places []string
		for _, h := range holders {
			places = append(places, strings.TrimSuffix(h.Cluster+"/"+h.Node, "/"))
		}
		said = append(said, fmt.Sprintf("%s (%s) is on %s", set, sized(holders[0].Size), some(places)))
		for i := range inv.places {
			near := 0.0
			for _, h := range holders {
				near = max(near, inv.around.closeness(h, &inv.places[i]))
			}
			points[i] += size * near
		}
	}
	for i := range points {
		points[i] *= preferred / max(whole, 1)
	}
	return strings.Join(said, "; "), points
}

// some names at most three.
func some(names []string) string {
	if more := len(names) - 3; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), more)
	}
	return strings.Join(names, ", ")
}

// sized is a size for people.
func sized(bytes float64) string {
	if bytes <= 0 {
		return "of unknown size"
	}
	for _, unit := range []string{"B", "KiB", "MiB", "GiB", "TiB"} {
		if bytes < 1024 || unit == "TiB" {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", bytes), ".0") + " " + unit
		}
		bytes /= 1024
	}
	return ""
}

// How near a place is, as for components that communicate (placement.Affinity).
const (
	sameCluster      = 0.7
	sameOrchestrator = 0.2
	halfway          = 10.0 // ms of latency that halve it
)

// closeness is how near a copy is to a node: 1 on it, else by the measured latency, else by cluster and orchestrator.
func (s *surroundings) closeness(h holder, p *topology.Place) float64 {
	if p.Cluster == h.Cluster && (h.Node == "" || h.Node == p.Node) {
		return 1
	}
	if rtt, known := s.rtt[pairOf(p.Node, h.Node)]; known && h.Node != "" {
		return sameCluster / (1 + rtt/2/halfway)
	}
	if p.Cluster == h.Cluster {
		return sameCluster
	}
	if p.In.Orchestrator() == h.orchestrator {
		return sameOrchestrator
	}
	return 0
}

// halfDistance is from how far away a node is worth half as much to users: 100 km are a millisecond there and back in glass.
const halfDistance = 100_000.0 // m

// nearUsers is what each node is worth for the users of a component.
func (inv *inventory) nearUsers(c *appmodel.Component) (about string, points []float64) {
	if len(c.Near.Users) == 0 {
		return "", nil
	}
	points = make([]float64, len(inv.places))
	var said []string
	whole := 0.0
	for _, zone := range c.Near.Users {
		users := 0.0
		for _, k := range inv.around.users[zone] {
			users += k.Users
			for i := range inv.places {
				if at, known := inv.around.stands[[2]string{inv.places[i].Cluster, inv.places[i].Node}]; known {
					points[i] += k.Users / (1 + k.At.Distance(at)/halfDistance)
				}
			}
		}
		if len(inv.around.users[zone]) == 0 {
			said = append(said, "zone "+zone+" has no place that is known")
			continue
		}
		whole += users
		said = append(said, fmt.Sprintf("%.0f in zone %s", users, zone))
	}
	for i := range points {
		points[i] *= preferred / cmp.Or(whole, 1)
	}
	return "users: " + strings.Join(said, "; "), points
}
