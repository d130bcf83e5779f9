// Package groups keeps the objects of SWM, CODECO's scheduler (qos-scheduler.siemens.com/v1alpha1), as they are handed in over HTTP
// or as objects of Kubernetes, and runs the applications of a group as one application of ours as soon as the group is complete.
//
// A group is written as a CodecoApp, whose services are the workloads of its members: what holds for a CodecoApp holds for it, and
// nothing after this package asks which it was. Parts of a network (NetworkLink, NetworkPath) become the network that they describe
// together.
package groups

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/problem"
)

// Group and Version are those of all kinds.
const (
	Group   = "qos-scheduler.siemens.com"
	Version = "v1alpha1"
)

// LabelGroup is the label by which an Application belongs to a group; LabelNetwork is that of the network which a part describes.
const (
	LabelGroup   = "application-group"
	LabelNetwork = "network-implementation"
)

// Kind is one kind of object that is handed in.
type Kind string

// The kinds. NetworkTopology has operations of its own; Channel and AssignmentPlan are written, not read.
const (
	ApplicationGroup Kind = "ApplicationGroup"
	Application      Kind = "Application"
	NetworkEndpoint  Kind = "NetworkEndpoint"
	NetworkLink      Kind = "NetworkLink"
	NetworkPath      Kind = "NetworkPath"
	Ipam             Kind = "Ipam"
	NetworkTopology  Kind = "NetworkTopology"
)

// plurals are the kinds by their names in paths.
var plurals = map[string]Kind{
	"applicationgroups": ApplicationGroup, "applications": Application, "networkendpoints": NetworkEndpoint,
	"networklinks": NetworkLink, "networkpaths": NetworkPath, "ipams": Ipam,
}

// KindOf returns the kind with this plural. The error is NotFound.
func KindOf(plural string) (Kind, error) {
	if k, known := plurals[plural]; known {
		return k, nil
	}
	return "", problem.New(problem.NotFound, "there are no objects called %s", problem.Brief(plural, 60))
}

// Key names an object.
type Key struct {
	Kind            Kind
	Namespace, Name string
}

// InCluster names an object of a cluster. A NetworkEndpoint is in no namespace there, and in "default" here, as events about such
// objects are.
func InCluster(kind Kind, namespace, name string) Key {
	if kind == NetworkEndpoint {
		namespace = "default"
	}
	return Key{kind, namespace, name}
}

// String is "Kind namespace/name".
func (k Key) String() string { return fmt.Sprintf("%s %s/%s", k.Kind, k.Namespace, k.Name) }

// Object is one that was handed in.
type Object struct {
	Key
	UID      string // in Kubernetes; empty for one that came over HTTP
	MemberOf string // the group of an Application, the network of a part of one
	Spec     any    // *GroupSpec, *ApplicationSpec, *LinkSpec, *PathSpec, *EndpointSpec or *IpamSpec

	document document
}

// document is what is stored and shown.
type document struct {
	APIVersion string         `json:"apiVersion"`
	Kind       Kind           `json:"kind"`
	Metadata   metadata       `json:"metadata"`
	Spec       map[string]any `json:"spec"`
	Status     any            `json:"status,omitempty"`
}

type metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

var name = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

const longestName = 253

// Read reads an object as YAML or JSON. Its kind must be that of the key; what it says of its name and namespace must be the key's.
// The error is Malformed, or Invalid with every fault at its path.
func Read(k Key, body []byte) (*Object, error) {
	var faults problem.Faults
	roots, err := descriptor.Load(body, &faults)
	if err != nil {
		return nil, err
	}
	if len(roots) != 1 {
		return nil, problem.New(problem.Malformed, "the body has %d documents; one is wanted", len(roots))
	}
	text, err := json.Marshal(descriptor.Plain(roots[0]))
	if err != nil {
		return nil, err
	}
	o := &Object{Key: k}
	if err := json.Unmarshal(text, &o.document); err != nil {
		return nil, problem.Wrap(problem.Malformed, err, "the object cannot be read: %v", err)
	}
	for key := range unknown(text) {
		faults.Add(key, 0, "is no field of an object of Kubernetes")
	}
	o.head(&faults)
	o.Spec = specs[k.Kind]()
	spec, err := json.Marshal(o.document.Spec)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(spec, o.Spec); err != nil {
		return nil, problem.Wrap(problem.Malformed, err, "spec cannot be read: %v", err)
	}
	o.Spec.(checked).check(o, &faults)
	return o, faults.Err("the " + string(k.Kind) + " is not valid")
}

// unknown are the fields at the top of an object, which is JSON, that no object has; what is below them is for others to check.
func unknown(text []byte) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	if json.Unmarshal(text, &all) != nil {
		return nil // which was said of it already
	}
	for _, known := range []string{"apiVersion", "kind", "metadata", "spec", "status"} {
		delete(all, known)
	}
	return all
}

func (o *Object) head(faults *problem.Faults) {
	d := &o.document
	if d.Kind != "" && d.Kind != o.Kind {
		faults.Add("kind", 0, "is %s, which these are not", problem.Brief(string(d.Kind), 60))
	}
	if d.Metadata.Name != "" && d.Metadata.Name != o.Name {
		faults.Add("metadata.name", 0, "is not %s, as the path says", o.Name)
	}
	if d.Metadata.Namespace != "" && d.Metadata.Namespace != o.Namespace {
		faults.Add("metadata.namespace", 0, "is not %s, as the path says", o.Namespace)
	}
	for _, part := range [][2]string{{"metadata.name", o.Name}, {"metadata.namespace", o.Namespace}} {
		if len(part[1]) > longestName || !name.MatchString(part[1]) {
			faults.Add(part[0], 0, "is no name of an object: small letters, digits, dashes and dots")
		}
	}
	if d.Spec == nil {
		d.Spec = map[string]any{}
	}
	d.APIVersion, d.Kind = Group+"/"+Version, o.Kind
	d.Metadata.Name, d.Metadata.Namespace, d.Status = o.Name, o.Namespace, nil
	for key := range d.Metadata.Annotations { // those of tools are not ours to keep
		if !slices.Contains([]string{"new-channels", "plan-trigger"}, key) {
			delete(d.Metadata.Annotations, key)
		}
	}
}

// checked is a spec that finds its own faults and says what the object belongs to.
type checked interface {
	check(o *Object, faults *problem.Faults)
}

var specs = map[Kind]func() any{
	ApplicationGroup: func() any { return new(GroupSpec) },
	Application:      func() any { return new(ApplicationSpec) },
	NetworkEndpoint:  func() any { return new(EndpointSpec) },
	NetworkLink:      func() any { return new(LinkSpec) },
	NetworkPath:      func() any { return new(PathSpec) },
	Ipam:             func() any { return new(IpamSpec) },
}
