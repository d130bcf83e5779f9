// Package check validates rule groups as Prometheus does when it loads them.
//
// Expressions are parsed by Prometheus' own parser, so only the function that accepts rules imports this package. The
// rest is checked here: Prometheus' package for that, rulefmt, would add its query engine and HTML templates, which
// would exceed the size budget of an image. The tests compare both.
package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template/parse"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/littoral-project/littoral/shared/decode"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/telemetry/rules"
)

// Limits of one request.
const (
	maxGroups = 100
	maxRules  = 1000 // of one group
)

// request is an accepted body: the format of ICOS, or a plain rule file in JSON.
type request struct {
	Data   *rules.Groups  `json:"data"`
	Groups *[]rules.Group `json:"groups"`
}

// Request parses the body of POST /rules and checks every group in it; it reports all faults at once.
func Request(body []byte) ([]rules.Group, error) {
	var in request
	if err := decode.JSON(body, &in); err != nil {
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

// unknownMember finds a field that rule files do not have: a misspelled "annotations" would be dropped silently.
func unknownMember(body []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&request{})
	if err != nil && strings.Contains(err.Error(), "unknown field") {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// Groups adds a fault for everything that Prometheus would refuse in the groups, which are at path.
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
	case len(g.Name) > rules.MaxName:
		faults.Add(at+".name", 0, "has %d bytes, at most %d are taken", len(g.Name), rules.MaxName)
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
	labels(g.Labels, at+".labels", faults)
	for i, r := range g.Rules {
		rule(r, fmt.Sprintf("%s.rules[%d]", at, i), faults)
	}
}

func rule(r rules.Rule, at string, faults *problem.Faults) {
	durations(at, faults, map[string]string{"for": r.For, "keep_firing_for": r.KeepFiringFor})
	switch {
	case r.Record != "" && r.Alert != "":
		faults.Add(at, 0, "only one of 'record' and 'alert' must be set")
	case r.Record == "" && r.Alert == "":
		faults.Add(at, 0, "one of 'record' or 'alert' must be set")
	}
	expression(r.Expr, at+".expr", faults)
	if r.Record != "" {
		recording(r, at, faults)
	}
	labels(r.Labels, at, faults)
	for _, name := range slices.Sorted(maps.Keys(r.Annotations)) {
		if !model.UTF8Validation.IsValidLabelName(name) {
			faults.Add(at, 0, "invalid annotation name: %q", name)
		}
	}
	if r.Alert != "" {
		templates("label", r.Alert, r.Labels, at, faults)
		templates("annotation", r.Alert, r.Annotations, at, faults)
	}
}

func expression(expr, at string, faults *problem.Faults) {
	switch {
	case expr == "":
		faults.Add(at, 0, "must be set")
	case len(expr) > rules.MaxExpr:
		faults.Add(at, 0, "has %d bytes, at most %d are taken", len(expr), rules.MaxExpr)
	default:
		if _, err := parser.NewParser(parser.Options{}).ParseExpr(expr); err != nil {
			faults.Add(at, 0, "could not parse expression: %v", err)
		}
	}
}

// recording adds a fault for each field that a recording rule must not have.
func recording(r rules.Rule, at string, faults *problem.Faults) {
	if len(r.Annotations) > 0 {
		faults.Add(at, 0, "a recording rule has no annotations")
	}
	for _, d := range []struct{ name, value string }{{"for", r.For}, {"keep_firing_for", r.KeepFiringFor}} {
		if parsed, err := model.ParseDuration(d.value); err == nil && parsed != 0 {
			faults.Add(at, 0, "a recording rule has no %s", d.name)
		}
	}
	if !model.UTF8Validation.IsValidMetricName(r.Record) || strings.ContainsAny(r.Record, "{}") {
		faults.Add(at, 0, "invalid name of a recording rule: %q", r.Record)
	}
}

func labels(set map[string]string, at string, faults *problem.Faults) {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if !model.UTF8Validation.IsValidLabelName(name) || name == model.MetricNameLabel {
			faults.Add(at, 0, "invalid label name: %q", name)
		}
		if !model.LabelValue(set[name]).IsValid() {
			faults.Add(at, 0, "invalid label value: %q", set[name])
		}
	}
}

// preamble is the text that Prometheus adds before every template.
const preamble = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}" +
	"{{$value := .Value}}"

// known are the functions of templates: those of the language and those that Prometheus adds.
var known = func() map[string]any {
	set := map[string]any{}
	for _, name := range strings.Fields(`and call html index slice js len not or print printf println
urlquery eq ge gt le lt ne args externalURL first graphLink humanize humanize1024 humanizeDuration humanizePercentage
humanizeTimestamp label match now parseDuration pathPrefix query reReplaceAll safeHtml sortByLabel stripDomain stripPort
strvalue tableLink title toDuration toLower toTime toUpper urlQueryEscape value`) {
		set[name] = struct{}{}
	}
	return set
}()

func templates(what, alert string, texts map[string]string, at string, faults *problem.Faults) {
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if !strings.Contains(texts[name], "{{") {
			continue
		}
		if _, err := parse.Parse("__alert_"+alert, preamble+texts[name], "", "", known); err != nil {
			faults.Add(at, 0, "%s %q: %v", what, name, err)
		}
	}
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

func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}
