package codecoapp

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// What each class does to placement; shared/docs/codeco.md has the same table for people, and a test compares the two.
//
// Weights are those of the scores for performance and energy; security has the rest. Lost is how long a component may be
// silent before it is moved. Score is the least SCA score of its node, which measures security and compliance alike.
var (
	performanceOf = map[string]float64{"Gold": 0.6, "Silver": 0.45, "BestEffort": 1.0 / 3}
	scoreOf       = map[string]int{"High": 80, "Good": 65, "Medium": 50, "Low": 0, "None": 0}
	lostAfterOf   = map[string]string{"High": "5m", "Medium": "2m", "Low": "1m"}
)

// profiles are the values of performanceProfile, and the shares that the scores then have.
var profiles = map[string]struct{ performance, energy float64 }{
	"Greenness":  {0.2, 0.6},
	"Resilience": {0.4, 0.1},
}

// swapped are the words that the first generation allows where its enumerations stand on the wrong field.
var (
	swappedQoS      = map[string]string{"High": "Gold", "Medium": "Silver", "Dev": "BestEffort"}
	swappedSecurity = map[string]string{"Gold": "High", "Silver": "Medium", "BestEffort": "Low"}
)

// classes turns the classes of the application into policies: those of placement and the runtime are the ones that exist.
func (r *reader) classes(spec *yaml.Node) {
	qos, qosNode, qosPath := r.enum(spec, wordsOf(performanceOf), swappedQoS, "qosClass", "qosclass")
	security, securityNode, securityPath := r.enum(spec, wordsOf(scoreOf), swappedSecurity, "securityClass", "securityclass")
	compliance, complianceNode, compliancePath := r.compliance(spec)
	tolerance, toleranceNode, tolerancePath := r.enum(spec, wordsOf(lostAfterOf), nil, "appFailureTolerance", "appfailuretolerance")
	profile, profileNode, profilePath := r.enum(spec, wordsOf(profiles), nil, "performanceProfile")

	if score := scoreOf[security]; score > 0 {
		r.policy(securityPath, securityNode, "security", "threshold", number(score))
	}
	if score := scoreOf[compliance]; score > 0 {
		r.policy(compliancePath, complianceNode, "security", "threshold", number(score))
	}
	if tolerance != "" {
		r.policy(tolerancePath, toleranceNode, "redeployOnLostTelemetry", "timeout", str(lostAfterOf[tolerance]))
	}
	limit, limitNode, limitPath := r.percent(spec, "appEnergyLimit", "appenergylimit")
	performance, energy := 1.0/3, 1.0/3
	path, node := qosPath, qosNode
	if qos != "" {
		performance = performanceOf[qos]
		energy = (1 - performance) / 2
	}
	if limitNode != nil { // the tighter the limit, the more energy counts; 100 leaves it as it is
		path, node = limitPath, limitNode
		energy += (1 - energy) * (1 - limit/100) / 2
		performance = min(performance, 1-energy)
	}
	if profile != "" {
		r.profile = strings.ToLower(profile)
		path, node = profilePath, profileNode
		performance, energy = profiles[profile].performance, profiles[profile].energy
	}
	if node != nil {
		weight := func(w float64) *yaml.Node {
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: strconv.FormatFloat(w, 'f', 4, 64)}
		}
		r.policy(path, node, "scheduler", "performance", weight(performance), "energy", weight(energy),
			"security", weight(max(0, 1-performance-energy)))
	}
}

// policy adds a policy that follows from a key of the CodecoApp.
func (r *reader) policy(path string, at *yaml.Node, kind string, pairs ...any) {
	n := object(append([]any{"type", str(kind)}, pairs...)...)
	n.Line = at.Line
	r.paths = append(r.paths, renamed{fmt.Sprintf("policies[%d]", len(r.policies)), path})
	r.policies = append(r.policies, n)
}

// enum reads one of the words of a table; an empty text counts as left out, as the published samples write it.
func (r *reader) enum(spec *yaml.Node, known []string, swapped map[string]string, keys ...string) (word string, n *yaml.Node, path string) {
	n, key := first(spec, keys...)
	path = "spec." + key
	if n == nil || n.Kind == yaml.ScalarNode && strings.TrimSpace(n.Value) == "" {
		return "", nil, path
	}
	word = strings.TrimSpace(n.Value)
	if slices.Contains(known, word) {
		return word, n, path
	}
	if r.generation <= V1 && swapped[word] != "" {
		r.warn(path, n, "%q is a word of another class, taken for %s", word, swapped[word])
		return swapped[word], n, path
	}
	r.fault(path, n, "%q is not one of %s", word, strings.Join(known, ", "))
	return "", nil, path
}

// compliance reads the compliance class, which was a yes or no at first.
func (r *reader) compliance(spec *yaml.Node) (word string, n *yaml.Node, path string) {
	n, key := first(spec, "complianceClass", "complianceclass")
	if n != nil && r.generation <= V1 {
		switch n.Value {
		case "Compliant":
			return "High", n, "spec." + key
		case "Non-Compliant":
			return "Low", n, "spec." + key
		}
	}
	return r.enum(spec, []string{"High", "Low", "Medium"}, nil, "complianceClass", "complianceclass")
}

// percent reads a number from 0 to 100, with or without its sign.
func (r *reader) percent(spec *yaml.Node, keys ...string) (value float64, n *yaml.Node, path string) {
	n, key := first(spec, keys...)
	path = "spec." + key
	if n == nil || strings.TrimSpace(n.Value) == "" {
		return 0, nil, path
	}
	value, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(n.Value), "%"), 64)
	if err != nil || !(value >= 0 && value <= 100) {
		r.fault(path, n, "must be a percentage, 0 to 100")
		return 0, nil, path
	}
	return value, n, path
}

// wordsOf lists the words of a table in their order.
func wordsOf[V any](words map[string]V) []string {
	return slices.Sorted(maps.Keys(words))
}
