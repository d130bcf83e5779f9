// Package check tells whether rule groups are what Prometheus will load, by Prometheus' own reading of rule files.
//
// It links Prometheus' parser, so only the function that takes rules in imports it.
package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/telemetry/rules"
)

// Limits of one request. The last bounds what parsing an expression costs: its depth is at most its length.
const (
	maxGroups = 100
	maxRules  = 1000 // of one group
	maxName   = 500  // bytes
	maxExpr   = 16 << 10
)

// request is what may be sent: as ICOS does, or plainly as a rule file written in JSON.
type request struct {
	Data   *rules.Groups  `json:"data"`
	Groups *[]rules.Group `json:"groups"`
}

// Request reads the body of POST /rules and checks every group in it; all faults are named at once.
func Request(body []byte) ([]rules.Group, error) {
	var in request
	if err := function.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	var faults problem.Faults
	path, groups := "groups", []rules.Group{}
	switch {
	case in.Data != nil && in.Groups != nil:
		faults.Add("groups", 0, "is given beside data; send one of them")
	case in.Data != nil:
		path, groups = "data.groups", in.Data.Groups
	case in.Groups != nil:
		groups = *in.Groups
	}
	if err := unknownMember(body); err != nil {
		faults.Add("", 0, "%v", err)
	}
	Groups(groups, path, &faults)
	return groups, faults.Err("the rules are not valid")
}

// unknownMember finds a member that no rule file has: a misspelled "annotations" would be dropped without a word.
func unknownMember(body []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&request{})
	if err != nil && strings.Contains(err.Error(), "unknown field") {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// Groups adds a fault for all that Prometheus would refuse in the groups, which stand at path.
func Groups(groups []rules.Group, path string, faults *problem.Faults) {
	switch {
	case len(groups) == 0:
		faults.Add(path, 0, "is empty; at least one group is needed")
	case len(groups) > maxGroups:
		faults.Add(path, 0, "has %d groups, at most %d are taken at once", len(groups), maxGroups)
		return
	}
	seen := map[string]int{}
	for i, g := range groups {
		at := fmt.Sprintf("%s[%d]", path, i)
		if first, twice := seen[g.Name]; twice {
			faults.Add(at+".name", 0, "is that of %s[%d] too", path, first)
		}
		seen[g.Name] = i
		group(g, at, faults)
	}
}

func group(g rules.Group, at string, faults *problem.Faults) {
	switch {
	case strings.TrimSpace(g.Name) == "":
		faults.Add(at+".name", 0, "is missing")
	case len(g.Name) > maxName:
		faults.Add(at+".name", 0, "has %d bytes, at most %d are taken", len(g.Name), maxName)
	case hasControl(g.Name):
		faults.Add(at+".name", 0, "holds a control character")
	}
	if len(g.Rules) == 0 || len(g.Rules) > maxRules {
		faults.Add(at+".rules", 0, "has %d rules, from 1 to %d are taken", len(g.Rules), maxRules)
		return
	}
	durations(at, faults, map[string]string{"interval": g.Interval, "query_offset": g.QueryOffset})
	if g.Limit < 0 {
		faults.Add(at+".limit", 0, "is below 0")
	}
	frame := rules.Group{Name: "g", Labels: g.Labels, Rules: []rules.Rule{{Record: "r", Expr: "1"}}}
	load(frame, at+".labels", faults)
	for i, r := range g.Rules {
		rule(r, fmt.Sprintf("%s.rules[%d]", at, i), faults)
	}
}

func rule(r rules.Rule, at string, faults *problem.Faults) {
	durations(at, faults, map[string]string{"for": r.For, "keep_firing_for": r.KeepFiringFor})
	if len(r.Expr) > maxExpr {
		faults.Add(at+".expr", 0, "has %d bytes, at most %d are taken", len(r.Expr), maxExpr)
		return
	}
	r.For, r.KeepFiringFor = valid(r.For), valid(r.KeepFiringFor) // said above
	load(rules.Group{Name: "g", Rules: []rules.Rule{r}}, at, faults)
}

var durationMembers = []string{"interval", "query_offset", "for", "keep_firing_for"}

func durations(at string, faults *problem.Faults, values map[string]string) {
	for _, name := range durationMembers {
		if text := values[name]; text != "" && valid(text) == "" {
			faults.Add(at+"."+name, 0, "%q is not a duration such as 30s or 5m", text)
		}
	}
}

// valid returns the text if it is a duration, else "".
func valid(text string) string {
	if _, err := model.ParseDuration(text); err != nil {
		return ""
	}
	return text
}

// position is where rulefmt found something in the file that only load has seen.
var position = regexp.MustCompile(`^(\d+:\d+: )+`)

// load has Prometheus read the group as a file, and adds what it says of it.
func load(g rules.Group, at string, faults *problem.Faults) {
	body, err := yaml.Marshal(rules.Groups{Groups: []rules.Group{g}})
	if err != nil {
		faults.Add(at, 0, "%v", err)
		return
	}
	_, errs := rulefmt.Parse(
		body,
		false,
		model.UTF8Validation,
		parser.NewParser(parser.Options{}),
		promslog.NewNopLogger(),
	)
	for _, err := range errs {
		var one *rulefmt.Error
		if errors.As(err, &one) {
			err = &one.Err
		}
		text := position.ReplaceAllString(err.Error(), "")
		where := at
		if strings.HasPrefix(text, "could not parse expression") || strings.HasPrefix(text, "field 'expr'") {
			where = at + ".expr"
		}
		faults.Add(where, 0, "%s", text)
	}
}

func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}
