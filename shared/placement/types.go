// Package placement decides which component of an application runs on which node, and says why.
//
// Place is pure and deterministic: no I/O, no clock, no randomness; the same problem gives the same plan on all
// machines of one architecture, and ties go to the smaller id. A plan carries its objective, a proven upper bound and
// the gap between them. Explain returns, for each component and node, which constraints failed or what it would earn.
// README.md has the model in formulas.
//
// Units are the same everywhere: cpu in millicores, memory in bytes, scores and affinities in points (a node scores
// 0..100 points), usage as a fraction 0..1.
package placement

import (
	"cmp"
	"time"

	"github.com/littoral-project/littoral/shared/network"
)

const (
	// DefaultMoveCost is the cost of leaving the current place, in points, if Problem.MoveCost is 0. It is as much as a
	// better score can gain at most (100) together with two affinities of the default weight. So a component that may
	// stay does stay, unless strong affinities, or another component that would have no place, make it move.
	DefaultMoveCost = 200.0

	// DefaultAffinityWeight is a sensible Affinity.Weight for two components that communicate, in points: sharing a
	// cluster is then worth 25 points of node score more than merely sharing an orchestrator.
	DefaultAffinityWeight = 50.0

	// DefaultBudget limits the search, in work units, if Problem.Budget is 0; every component adds BudgetPerComponent
	// and every node BudgetPerNode, up to MaxBudget. A unit is one look at one node or at one affinity, some ten
	// nanoseconds.
	DefaultBudget      = 6_000_000
	BudgetPerComponent = 4_000
	BudgetPerNode      = 1_000
	MaxBudget          = 50_000_000

	// MaxComponents, MaxNodes and MaxPairs bound a problem; a larger one is refused. Pairs are sets of equal
	// requirements times nodes, and kinds of resources times nodes: replicas of one component count once.
	MaxComponents = 200_000
	MaxNodes      = 200_000
	MaxPairs      = 10_000_000
	MaxChannels   = 20_000

	// NominalCPU (millicores) and NominalMemory (bytes) are counted in the score of a node for a reservation of none,
	// as in the scheduler of Kubernetes: a component without requests uses something all the same. They take no
	// capacity.
	NominalCPU    = 100
	NominalMemory = 200 << 20

	// MaxExplained is how many nodes, over all components, one Explanation details. Each takes some 300 bytes, and as
	// much again as JSON, so this many fit into a small function.
	MaxExplained = 20_000
)

// Problem is everything a placement depends on.
type Problem struct {
	Components []Component `json:"components"`
	Nodes      []Node      `json:"nodes"`
	// Absent count nodes that are not among Nodes; see Absent.
	Absent []Absent `json:"absent,omitempty"`
	// Affinities join components that communicate. Several for one pair add up; order in a pair does not matter.
	Affinities []Affinity `json:"affinities,omitempty"`
	// Spreads limit how many members of a set share a node, cluster, orchestrator or label value.
	Spreads []Spread `json:"spreads,omitempty"`
	// Channels are traffic between components over Network; see Channel.
	Channels []Channel         `json:"channels,omitempty"`
	Network  *network.Topology `json:"network,omitempty"`
	// Links describe how far clusters are from each other; see Link.
	Links []Link `json:"links,omitempty"`
	// Peers are the clusters that links can be made between, each with each; Target.Node is empty. See Affinity.NeedsLink.
	Peers   []Target `json:"peers,omitempty"`
	Weights Weights  `json:"weights"`
	// Scores, when set, replace the weighted score: Scores[i][j] is what Components[i] earns on Nodes[j], in points.
	// Components with the very same row count as equals, which saves work.
	Scores [][]float64 `json:"scores,omitempty"`
	// Preferences make some nodes better for some components than their scores say; see Preference.
	Preferences []Preference `json:"preferences,omitempty"`
	// Groups are applications with their own settings, placed together; see Group.
	Groups []Group `json:"groups,omitempty"`
	// OneOrchestrator demands one orchestrator type for all components that are in no group.
	OneOrchestrator bool `json:"oneOrchestrator,omitempty"`
	// MoveCost is charged, in points, for each component that leaves its Current place, be it for another or for
	// none; 0 means DefaultMoveCost.
	MoveCost float64 `json:"moveCost,omitempty"`
	// StaleAfter is the age of telemetry beyond which a node is not used; 0 leaves the decision to Node.Stale.
	StaleAfter time.Duration `json:"staleAfter,omitempty"`
	// Budget is how many work units the search may spend; 0 means DefaultBudget and what the size adds. Filtering and
	// scoring every pair and one greedy pass are always done.
	Budget int64 `json:"budget,omitempty"`
}

// Component is one thing to place. A replica is a component of its own ("web/1"), kept apart by AntiAffinity or Spread.
type Component struct {
	ID string `json:"id"`
	// Name is what sentences call it; empty is the ID. Those about components of other groups put the name of its group
	// before it.
	Name string `json:"name,omitempty"`
	// Group names the Group it belongs to; empty is none.
	Group string `json:"group,omitempty"`
	// Engines and Orchestrators list what is allowed, in any case; empty allows all.
	Engines       []string `json:"engines,omitempty"`
	Orchestrators []string `json:"orchestrators,omitempty"`
	Architecture  string   `json:"architecture,omitempty"` // see CanonicalArchitecture; empty is any
	// Shared lists the orchestrators of components that are already placed and must have the same orchestrator as this
	// one, in any case.
	Shared []string `json:"shared,omitempty"`

	CPU     int64    `json:"cpu,omitempty"`     // millicores
	Memory  int64    `json:"memory,omitempty"`  // bytes
	Devices []string `json:"devices,omitempty"` // each entry takes one device of that path; a path may repeat
	// Resources are further countable things (GPU memory, storage), in the unit the node uses for the same key.
	Resources map[string]int64 `json:"resources,omitempty"`

	Labels         map[string][]string `json:"labels,omitempty"`         // node label -> values it may have
	MinSecurity    int                 `json:"minSecurity,omitempty"`    // lowest SCA score, 0 none; unknown fails
	MaxCPUUsage    float64             `json:"maxCPUUsage,omitempty"`    // highest present usage of the node, 0 none
	MaxMemoryUsage float64             `json:"maxMemoryUsage,omitempty"` // the same for memory
	// MinFreeMemory, in bytes, must be free on the node before anything of this problem is placed. Memory has to fit as
	// well, so the larger of both decides.
	MinFreeMemory int64 `json:"minFreeMemory,omitempty"`

	Targets  []Target `json:"targets,omitempty"`  // places the user fixed; empty is any
	Excluded []Target `json:"excluded,omitempty"` // places it must not go, such as one that violated a policy
	// Current is where it runs now. With empty fields, any place that matches counts as staying.
	Current *Target `json:"current,omitempty"`
	// Stays says that it continues to run where it is: it does not matter whether that node reports or accepts new
	// work.
	Stays bool `json:"stays,omitempty"`
	// AntiAffinity names components that must not share its node. One side is enough; unknown ids are refused.
	AntiAffinity []string `json:"antiAffinity,omitempty"`
}

// Preference is a reason why some nodes are better for some components, beside what Weights weigh: near their data, near their
// users, recommended by a model.
type Preference struct {
	Name       string   `json:"name"`            // one word for tables: profile, data, users, recommendation
	About      string   `json:"about,omitempty"` // what it is for these components, as half a sentence for people
	Components []string `json:"components"`      // ids
	// Points are what each of them earns on each of Problem.Nodes, added to its score.
	Points []float64 `json:"points"`
}

// Target is a place, or a pattern of places: an empty field matches anything. Orchestrators compare in any case.
type Target struct {
	Orchestrator string `json:"orchestrator,omitempty"`
	Cluster      string `json:"cluster,omitempty"`
	Node         string `json:"node,omitempty"`
}

// Node is one place with what it has. Orchestrator, Cluster and Name together identify it.
type Node struct {
	Orchestrator string `json:"orchestrator"`
	Cluster      string `json:"cluster"`
	Name         string `json:"name"`
	Engine       string `json:"engine,omitempty"`
	Architecture string `json:"architecture,omitempty"`
	// Attachment is the node of Problem.Network that its traffic begins and ends at; empty is the one of its name. Nodes
	// that are not in the network have no channels, except between components on one of them.
	Attachment string `json:"attachment,omitempty"`

	// CPU (millicores) and Memory (bytes) are the whole capacity; 0 means unknown, as for Docker nodes that do not
	// report cores. A component that asks for some of an unknown capacity is rejected, since nothing proves it fits;
	// one that asks for none may go there.
	CPU    int64 `json:"cpu,omitempty"`
	Memory int64 `json:"memory,omitempty"`
	// OtherCPU and OtherMemory are used by programs outside Littoral, so they are not in Reserved.
	OtherCPU    int64 `json:"otherCPU,omitempty"`
	OtherMemory int64 `json:"otherMemory,omitempty"`
	// Reserved is held by other components of Littoral; the components of this problem must be left out of it.
	// free = capacity - other - reserved, never below 0. For its score, a reservation of none counts as NominalCPU or
	// NominalMemory.
	Reserved []Reservation `json:"reserved,omitempty"`

	Devices   map[string]int    `json:"devices,omitempty"`   // path -> free count, reservations already deducted
	Resources map[string]int64  `json:"resources,omitempty"` // free amounts, reservations already deducted
	Labels    map[string]string `json:"labels,omitempty"`

	SCA         *float64 `json:"sca,omitempty"`         // security score 0..100; nil unknown
	EnergyWatts *float64 `json:"energyWatts,omitempty"` // present draw; nil unknown
	CPUUsage    float64  `json:"cpuUsage,omitempty"`    // fraction 0..1
	MemoryUsage float64  `json:"memoryUsage,omitempty"` // fraction 0..1

	Age           time.Duration `json:"age,omitempty"`           // of its newest telemetry, see Problem.StaleAfter
	Stale         bool          `json:"stale,omitempty"`         // the caller found its telemetry too old
	Doubts        []string      `json:"doubts,omitempty"`        // about its telemetry, in sentences; they explain, and decide nothing
	Unschedulable bool          `json:"unschedulable,omitempty"` // cordoned, drained or lost
}

// Target returns the place that is exactly this node.
func (n *Node) Target() Target { return Target{n.Orchestrator, n.Cluster, n.Name} }

// Absent counts nodes that the caller left out of Problem.Nodes, since no best plan needs them: they cannot take the
// components, or enough others under the same orchestrator are better for each. Only explanations look at them.
type Absent struct {
	Components   []string `json:"components"` // ids
	Orchestrator string   `json:"orchestrator"`
	Broken       []Rule   `json:"broken,omitempty"` // the rules that exclude the components there whatever else is placed; none: they fit
	Nodes        int      `json:"nodes"`
}

// Reservation is capacity held on a node, with the holder's readable name ("shop/web"). Devices are for display: they
// are already deducted from Node.Devices.
type Reservation struct {
	Holder  string   `json:"holder"`
	CPU     int64    `json:"cpu,omitempty"`
	Memory  int64    `json:"memory,omitempty"`
	Devices []string `json:"devices,omitempty"`
}

// PreferenceTerm is what one preference earns on a node.
type PreferenceTerm struct {
	Name   string  `json:"name"`
	Points float64 `json:"points"`
}

// Affinity rewards two components for being close. If graded, it earns Weight points times 1 on the same node,
// SameCluster in the same cluster, the factor of Link between linked clusters, else SameOrchestrator under the same
// orchestrator type, and 0 apart. An affinity of a component with itself makes no difference and is ignored.
type Affinity struct {
	A      string  `json:"a"`
	B      string  `json:"b"`
	Weight float64 `json:"weight"` // points, at least 0
	// Scope, when set, replaces the grades: the whole weight within the same "node", "cluster" or "orchestrator", and
	// nothing beyond.
	Scope string `json:"scope,omitempty"`
	// MaxLatency and Bandwidth are hard limits on the way between the two, 0 none. Within a cluster both hold; between
	// clusters a Link must prove them, and what all affinities send over a link must fit its bandwidth together.
	MaxLatency time.Duration `json:"maxLatency,omitempty"`
	Bandwidth  int64         `json:"bandwidth,omitempty"` // in the unit of Link.Bandwidth
	// NeedsLink keeps the two in one cluster or in two of Problem.Peers.
	NeedsLink bool `json:"needsLink,omitempty"`
}

// Channel is traffic from one component to another. On one node it uses nothing. Else it takes one route of the network
// that is fast enough and of its class or a better one, and takes its bandwidth from every medium of the route.
type Channel struct {
	ID         string        `json:"id"`
	Name       string        `json:"name,omitempty"` // what sentences call it, with both ends; empty is the ID
	From       string        `json:"from"`
	To         string        `json:"to"`
	Bandwidth  int64         `json:"bandwidth,omitempty"`  // bit/s
	MaxLatency time.Duration `json:"maxLatency,omitempty"` // 0 for none
	Class      network.Class `json:"class,omitempty"`
	// Current is the way that it takes now between the current places of its ends, which it keeps as far as that is possible. One that is
	// not known, or not there any more, makes no difference.
	Current *Way `json:"current,omitempty"`
}

// Way names a way through the network, as a ChannelAssignment does.
type Way struct {
	Network string `json:"network"`
	Path    string `json:"path"`
}

// ChannelAssignment is how one channel goes.
type ChannelAssignment struct {
	Channel string `json:"channel"`
	// Routed says that both ends have a place; Loopback that it is the same node, so that no network is used.
	Routed   bool          `json:"routed"`
	Loopback bool          `json:"loopback,omitempty"`
	Network  string        `json:"network,omitempty"`
	Path     string        `json:"path,omitempty"` // a given path, or the links of a computed one, with commas
	Latency  time.Duration `json:"latency,omitempty"`
}

// Link is the way between two clusters, the same in both directions; Target.Node is empty. It makes graded affinities
// earn SameCluster / (1 + Latency/NearLatency) / (1 + Cost) of their weight across it.
type Link struct {
	A         Target        `json:"a"`
	B         Target        `json:"b"`
	Latency   time.Duration `json:"latency,omitempty"`
	Cost      float64       `json:"cost,omitempty"`      // of traffic, 1 halves the affinity
	Bandwidth int64         `json:"bandwidth,omitempty"` // free bandwidth, in any unit; 0 is none
}

// Group is an application with its own settings, which replace those of the problem for its components.
type Group struct {
	ID              string        `json:"id"`
	Name            string        `json:"name,omitempty"` // what sentences call it; empty is the ID
	Weights         Weights       `json:"weights"`
	OneOrchestrator bool          `json:"oneOrchestrator,omitempty"`
	StaleAfter      time.Duration `json:"staleAfter,omitempty"`
}

// Spread bounds how many of its members may share one domain. Exactly one of Max and MaxShare is set.
type Spread struct {
	Components []string `json:"components"`
	// By is "node", "cluster", "orchestrator", or else a node label whose values are the domains; nodes without that
	// label together form one domain.
	By       string  `json:"by"`
	Max      int     `json:"max,omitempty"`      // members per domain
	MaxShare float64 `json:"maxShare,omitempty"` // 0..1 of the members, rounded down but at least one
}

// Weights are the weights of the scores; only their ratio matters. All zero weighs them equally.
type Weights struct {
	Performance float64 `json:"performance,omitempty"`
	Energy      float64 `json:"energy,omitempty"`
	Security    float64 `json:"security,omitempty"`
}

// Plan is the answer to a problem.
//
// Plans compare by Placed first and Objective second: no score outweighs a component left without a place. Objective =
// ScoreTotal + AffinityTotal - MoveTotal.
type Plan struct {
	Assignments []Assignment `json:"assignments"` // one per component, in the order of the problem
	Placed      int          `json:"placed"`
	// Channels has one entry per channel, in the order of the problem.
	Channels []ChannelAssignment `json:"channels,omitempty"`
	// PlacedBound is at least the number of components any plan can place.
	PlacedBound int     `json:"placedBound"`
	Objective   float64 `json:"objective"`
	// Bound is at least the objective of every plan that places as many components or more, and
	// Gap = (Bound - Objective) / max(1, |Bound|).
	Bound float64 `json:"bound"`
	Gap   float64 `json:"gap"`
	// Exact says that no plan is better, by proof; Bound = Objective and Gap = 0 then.
	Exact bool `json:"exact"`

	ScoreTotal    float64 `json:"scoreTotal"`
	AffinityTotal float64 `json:"affinityTotal"`
	MoveTotal     float64 `json:"moveTotal"`
	// Orchestrator is the type all components went to when Problem.OneOrchestrator asked for one.
	Orchestrator string `json:"orchestrator,omitempty"`
	Work         int64  `json:"work"` // units spent, see DefaultBudget
	// Prices are the values of scarce capacity, highest first: what one more unit of it would add to Bound.
	Prices []Price `json:"prices,omitempty"`
}

// Price is the dual value of capacity: what a component pays for the amount that it takes, if its place is to be worth
// it.
type Price struct {
	Target Target `json:"target"` // Node is empty if a spread is scarce
	Rule   Rule   `json:"rule"`
	Key    string `json:"key,omitempty"` // the device path, resource, or what a spread is by
	// Points is the price of Unit: of a core, of a GiB, or of one device, unit of a resource or place in a spread.
	Points float64 `json:"points"`
	Unit   string  `json:"unit"`
}

// Assignment is the place of one component.
type Assignment struct {
	Component string  `json:"component"`
	Placed    bool    `json:"placed"`
	Target    Target  `json:"target"` // exact when Placed, else zero
	Score     Score   `json:"score"`
	Affinity  float64 `json:"affinity"` // points earned with all its partners; a pair counts fully on both sides
	// Moved says that it had a Current place and has another now; Stayed that it keeps it.
	Moved  bool `json:"moved,omitempty"`
	Stayed bool `json:"stayed,omitempty"`
	// Reason says in one sentence why it has no place, or why it had to move; else empty.
	Reason string `json:"reason,omitempty"`
	// Rejections count the nodes that each rule excludes, for a component without a place; see Failure.Rule. A node
	// that fails three rules counts for each. Rules about the places of other components count only nodes that could
	// take the component otherwise.
	Rejections map[Rule]int `json:"rejections,omitempty"`
}

// Score is how good a node is for a component, each term 0..100.
type Score struct {
	Performance float64 `json:"performance"`
	Energy      float64 `json:"energy"`
	Security    float64 `json:"security"`
	Weighted    float64 `json:"weighted"` // by Problem.Weights
	// Preferred are the points of all preferences. What counts is Weighted + Preferred.
	Preferred float64 `json:"preferred,omitempty"`
}

// points are what counts.
func (s Score) points() float64 { return s.Weighted + s.Preferred }

// Rule names a hard constraint.
type Rule string

// The rules a node can fail alone, in the order they are checked.
const (
	RuleUnschedulable Rule = "unschedulable"
	RuleFreshness     Rule = "freshness"
	RuleTarget        Rule = "target"
	RuleExcluded      Rule = "excluded"
	RuleOrchestrator  Rule = "orchestrator"
	RuleEngine        Rule = "engine"
	RuleArchitecture  Rule = "architecture"
	RuleLabel         Rule = "label"
	RuleSecurity      Rule = "security"
	RuleCPUUsage      Rule = "cpu-usage"
	RuleMemoryUsage   Rule = "memory-usage"
	RuleFreeMemory    Rule = "free-memory"
	RuleCPU           Rule = "cpu"
	RuleMemory        Rule = "memory"
	RuleDevice        Rule = "device"
	RuleResource      Rule = "resource"
)

// The rules that depend on where the other components are. Cpu, memory, devices and resources that the rest of the plan
// takes fail under their own names above.
const (
	RuleAntiAffinity    Rule = "anti-affinity"
	RuleSpread          Rule = "spread"
	RuleOneOrchestrator Rule = "one-orchestrator"
	RuleLatency         Rule = "latency"
	RuleBandwidth       Rule = "bandwidth"
	RuleChannel         Rule = "channel"
	RuleLink            Rule = "link"
)

// Failure is one constraint that one node does not meet.
type Failure struct {
	Rule Rule   `json:"rule"`
	Key  string `json:"key,omitempty"` // the device path, resource, label or other component, where the rule has many
	// Detail is for people: "needs 4 cores, 2.5 free of 8, 3 reserved by shop/web".
	Detail    string `json:"detail"`
	Needed    string `json:"needed,omitempty"`    // "4 cores", "amd64"
	Available string `json:"available,omitempty"` // "2.5 cores", "arm64"

	id string // of what Key names, where its name is another
}

// of is the id of what the failure is about, or its Key.
func (f *Failure) of() string { return cmp.Or(f.id, f.Key) }

// Explanation says why a plan is as it is.
type Explanation struct {
	Components []ComponentExplanation `json:"components"` // in the order of the problem
	Placed     int                    `json:"placed"`
	Objective  float64                `json:"objective"`
	Bound      float64                `json:"bound"`
	Gap        float64                `json:"gap"`
	Exact      bool                   `json:"exact"`
	Prices     []Price                `json:"prices,omitempty"` // see Plan.Prices
}

// ComponentExplanation is the view of one component.
type ComponentExplanation struct {
	Component string `json:"component"`
	Placed    bool   `json:"placed"`
	Target    Target `json:"target"`
	// Summary is one sentence: what won and by how much, or why nothing did.
	Summary string `json:"summary"`
	// Nodes holds every node of the problem, best first: the chosen one, then those that could take the component
	// beside the rest of the plan by falling Total, then those that failed, by target.
	Nodes []NodeExplanation `json:"nodes"`
	// Preferences say by name what makes some nodes better for it.
	Preferences map[string]string `json:"preferences,omitempty"`
	// Omitted counts nodes missing at the end of Nodes, if the whole explanation exceeds MaxExplained. Fit counts all
	// nodes that could take it, including the chosen one.
	Omitted int `json:"omitted,omitempty"`
	Fit     int `json:"fit"`
	// RunnerUp is the best other node that could take it with the rest of the plan as it is; Margin is how many points
	// it is behind. A negative margin means the chosen node serves the rest of the plan better.
	RunnerUp *Target `json:"runnerUp,omitempty"`
	Margin   float64 `json:"margin,omitempty"`
	// Rejections count the nodes that each rule excludes, as in an Assignment.
	Rejections map[Rule]int `json:"rejections,omitempty"`
	// Relaxation is set when the component has no place and some change of its requirements would give it one.
	Relaxation *Relaxation `json:"relaxation,omitempty"`
}

// NodeExplanation is one node seen by one component, with every other component where the plan has it.
type NodeExplanation struct {
	Target   Target    `json:"target"`
	Chosen   bool      `json:"chosen,omitempty"`
	Failures []Failure `json:"failures,omitempty"` // all of them; empty when it could go here
	// Score, Affinity, Move and Total are what it earns or would earn here; zero when a rule fails whatever the others
	// do. Total = Score.Weighted + Score.Preferred + the affinity points - Move.
	Score     Score            `json:"score"`
	Preferred []PreferenceTerm `json:"preferred,omitempty"` // what Score.Preferred is made of

	Affinity []AffinityTerm `json:"affinity,omitempty"`
	Move     float64        `json:"move,omitempty"`
	Total    float64        `json:"total"`
}

// AffinityTerm is what a component earns with one partner.
type AffinityTerm struct {
	With      string  `json:"with"`
	Closeness string  `json:"closeness"` // same-node, same-cluster, linked, same-orchestrator, apart, or unplaced
	Weight    float64 `json:"weight"`
	Points    float64 `json:"points"` // weight times the factor of the closeness
}

// Relaxation is a smallest set of requirement changes that lets a component fit: leaving out any member makes it fail.
type Relaxation struct {
	Changes []Change `json:"changes"`
	Target  Target   `json:"target"` // a place it then has
	// Verified says that the problem was solved again to prove both halves: with all changes the component gets a place
	// without displacing others, and without any one of them it does not. Otherwise the problem was too large to
	// repeat, and both halves hold with the other components in their places in the plan.
	Verified bool `json:"verified"`
}

// Change is one requirement to lower or drop.
type Change struct {
	Rule   Rule   `json:"rule"`
	Key    string `json:"key,omitempty"` // the device path, resource, label or other component, where the rule has many
	From   string `json:"from"`
	To     string `json:"to"`     // "none" when dropped
	Detail string `json:"detail"` // "lower cpu from 16 cores to 8 cores"
}
