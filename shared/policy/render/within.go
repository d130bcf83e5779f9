package render

import (
	"errors"
	"regexp"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
)

// Within confines an expression to series of these application instances: each selector gets a matcher, in the tree. Series
// about nodes belong to nobody and stay as they are. The result is printed, parsed again and compared, as of a policy.
// The error is Invalid, at the path query.
func Within(expr string, instances []string) (string, error) {
	tree, err := parse(expr)
	if err != nil {
		return "", invalidQuery(err)
	}
	if kind := tree.Type(); kind != parser.ValueTypeVector && kind != parser.ValueTypeScalar {
		return "", invalidQuery(errors.New("gives a " + parser.DocumentedType(kind) + ", and only vectors and scalars have a course"))
	}
	own, err := within(instances)
	if err != nil {
		return "", invalidQuery(err)
	}
	for _, n := range selectors(tree) {
		if !ofNodes(n) {
			n.LabelMatchers = append(n.LabelMatchers, own)
		}
	}
	text := tree.String()
	again, err := promql.ParseExpr(text)
	if err != nil || !equal(tree, again) {
		return "", invalidQuery(errors.New("cannot be confined to your applications"))
	}
	for _, n := range selectors(again) {
		if !ofNodes(n) && !carries(n, []*labels.Matcher{own}) {
			return "", invalidQuery(errors.New("cannot be confined to your applications"))
		}
	}
	return text, nil
}

// Valid returns the expression as Prometheus' parser prints it, if it is one that has a course.
func Valid(expr string) (string, error) {
	tree, err := parse(expr)
	if err != nil {
		return "", invalidQuery(err)
	}
	return tree.String(), nil
}

// nobody is an instance that no application has: a list without instances admits nothing.
const nobody = "-"

func within(instances []string) (*labels.Matcher, error) {
	switch len(instances) {
	case 0:
		return labels.NewMatcher(labels.MatchEqual, registry.InstanceLabel, nobody)
	case 1:
		return labels.NewMatcher(labels.MatchEqual, registry.InstanceLabel, instances[0])
	}
	quoted := make([]string, len(instances))
	for i, instance := range instances {
		quoted[i] = regexp.QuoteMeta(instance)
	}
	return labels.NewMatcher(labels.MatchRegexp, registry.InstanceLabel, strings.Join(quoted, "|"))
}

// usage has what the containers of components use, by what it is called. The series of containers have no label of their
// application: they are joined with those that do, and so confined by them.
var usage = map[string]string{
	"cpu":    "container_cpu_utilization_ratio",
	"memory": "container_memory_working_set_bytes",
}

// Usages lists what Usage knows.
func Usages() []string { return []string{"cpu", "memory"} }

// Usage returns the expression for what the components of the instances use, in cores or bytes; nil = of all instances.
func Usage(name string, instances []string) (string, error) {
	metric, known := usage[name]
	if !known {
		return "", invalidQuery(errors.New("is not one of " + strings.Join(Usages(), ", ")))
	}
	matcher := registry.InstanceLabel + `!=""`
	if instances != nil {
		own, err := within(instances)
		if err != nil {
			return "", invalidQuery(err)
		}
		matcher = own.String()
	}
	join := func(id string) string {
		return `label_replace(sum by (` + id + `) (` + metric + `{` + id + `!=""}), "id", "$1", "` + id + `", "(.+)")` +
			` * on (id) group_left (icos_app_instance, icos_app_name, icos_app_component)` +
			` max by (id, icos_app_instance, icos_app_name, icos_app_component) (tlum_workload_info{` + matcher + `})`
	}
	return Valid(`sum by (icos_app_instance, icos_app_name, icos_app_component) (` + join("k8s_pod_uid") + ` or ` + join("container_id") + `)`)
}

func invalidQuery(err error) error {
	var faults problem.Faults
	faults.Add("query", 0, "%v", err)
	return faults.Err("the question is not valid")
}
