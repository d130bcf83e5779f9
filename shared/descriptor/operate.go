package descriptor

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/problem"
)

// scalable are the kinds of objects that have a number of replicas.
var scalable = []string{"Deployment", "StatefulSet", "ReplicaSet"}

// Scale returns the document with that many replicas in each object of the component that has a number of them. app is the
// document parsed. The error is NotFound, or Conflict when nothing of it can be scaled, or not to so many.
func Scale(document []byte, app *appmodel.Application, component string, replicas int) ([]byte, error) {
	c := app.Component(component)
	if c == nil {
		return nil, problem.New(problem.NotFound, "the application has no component %q", component)
	}
	if s := c.Scaling; s != nil && (replicas < s.MinReplicas || replicas > s.MaxReplicas) {
		return nil, problem.New(problem.Conflict, "%s may have %d to %d replicas, as its descriptor says", component, s.MinReplicas, s.MaxReplicas)
	}
	objects := slices.Clone(c.Manifests)
	found, changed := false, false
	for i := range objects {
		m := &objects[i]
		if !slices.Contains(scalable, m.Kind) {
			continue
		}
		text, was, err := withReplicas(m.YAML, replicas)
		if err != nil {
			return nil, fmt.Errorf("object %s of %s: %w", m.Name, component, err)
		}
		found, changed = true, changed || was != replicas
		m.YAML = text
	}
	switch {
	case !found:
		return nil, problem.New(problem.Conflict, "%s has no Deployment, StatefulSet or ReplicaSet to scale", component)
	case !changed:
		return document, nil
	}
	edit, err := Open(document)
	if err != nil {
		return nil, err
	}
	if err := edit.Replace(component, objects); err != nil {
		return nil, err
	}
	return edit.Document()
}

// withReplicas sets spec.replicas of an object and returns what it was; an object that does not say has one.
func withReplicas(text string, replicas int) (changed string, was int, err error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return "", 0, err
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return "", 0, fmt.Errorf("it is no object")
	}
	root := doc.Content[0]
	spec := &yaml.Node{Kind: yaml.MappingNode}
	if at := field(root, "spec"); at != nil {
		spec = at
	}
	was = 1
	if at := field(spec, "replicas"); at != nil {
		if was, err = strconv.Atoi(at.Value); err != nil {
			return "", 0, fmt.Errorf("its number of replicas is %q", at.Value)
		}
	}
	number := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(replicas)}
	root = withField(root, "spec", withField(spec, "replicas", number))
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return "", 0, err
	}
	return out.String(), was, e.Close()
}

// Pin returns the document with the component fixed to the target, or free to go anywhere if that is nil. The error is
// NotFound.
func Pin(document []byte, app *appmodel.Application, component string, to *appmodel.Target) ([]byte, error) {
	c := app.Component(component)
	switch {
	case c == nil:
		return nil, problem.New(problem.NotFound, "the application has no component %q", component)
	case to == nil && len(c.Targets) == 0, to != nil && len(c.Targets) == 1 && c.Targets[0] == *to:
		return document, nil
	}
	edit, err := Open(document)
	if err != nil {
		return nil, err
	}
	targets := &yaml.Node{Kind: yaml.SequenceNode}
	if to != nil {
		target := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
		target = withField(target, "cluster_name", textNode(to.Cluster))
		target = withField(target, "node_name", textNode(to.Node))
		if to.Orchestrator != "" {
			target = withField(target, "orchestrator", textNode(to.Orchestrator))
		}
		targets.Content = append(targets.Content, target)
	}
	if err := edit.set(component, "targets", targets); err != nil {
		return nil, err
	}
	return edit.Document()
}
