package cluster

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/mdm/connect"
)

// read takes of an object what says how things hang together, and what changes seldom. Environments, commands and annotations,
// which may hold secrets, stay in the cluster.
func (c *Cluster) read(kind string, u *unstructured.Unstructured) connect.Object {
	o := connect.Object{Type: Type(kind), Namespace: u.GetNamespace(), Name: u.GetName(), Attributes: map[string]any{}}
	if labels := u.GetLabels(); len(labels) > 0 {
		o.Attributes["labels"] = labels
	}
	x := reader{o.Attributes, u.Object}
	switch o.Type {
	case connect.KubeNode:
		x.node()
		o.To = []connect.End{{Relation: connect.Is, Entity: connect.NodeID(c.Name, o.Name)}}
	case connect.Claim:
		x.claim()
	case connect.Service:
		x.service()
		o.Selector, _, _ = unstructured.NestedStringMap(u.Object, "spec", "selector")
	case connect.Pod:
		x.pod()
		if ended := o.Attributes["phase"] == "Succeeded" || o.Attributes["phase"] == "Failed"; !ended {
			o.Labels = u.GetLabels()
		}
		o.To = c.ends(u, o.Labels != nil)
	}
	return o
}

// ends are what a pod leads to: where it runs unless it has ended, what it mounts, and the component that it was deployed for.
func (c *Cluster) ends(u *unstructured.Unstructured, runs bool) (to []connect.End) {
	if node, _, _ := unstructured.NestedString(u.Object, "spec", "nodeName"); node != "" && runs {
		to = append(to, connect.End{Relation: connect.RunsOn, Entity: connect.ObjectID(connect.KubeNode, c.Name, "", node)})
	}
	volumes, _, _ := unstructured.NestedSlice(u.Object, "spec", "volumes")
	for _, v := range volumes {
		volume, _ := v.(map[string]any)
		if claim, _, _ := unstructured.NestedString(volume, "persistentVolumeClaim", "claimName"); claim != "" {
			to = append(to, connect.End{Relation: connect.Mounts, Entity: connect.ObjectID(connect.Claim, c.Name, u.GetNamespace(), claim)})
		}
	}
	component := u.GetAnnotations()[label.MarkComponent] // a label is shortened
	if component == "" {
		component = u.GetLabels()[label.MarkComponent]
	}
	if application := u.GetLabels()[label.MarkInstance]; application != "" && component != "" {
		to = append(to, connect.End{Relation: connect.PartOf, Entity: mdm.EntityID(connect.Component, application+"/"+component)})
	}
	return to
}

// reader takes attributes of an object. What is not there, or has another type, is left out.
type reader struct {
	attributes map[string]any
	object     map[string]any
}

func (x reader) text(name string, at ...string) {
	if value, _, _ := unstructured.NestedString(x.object, at...); value != "" {
		x.attributes[name] = value
	}
}

func (x reader) quantity(name string, at ...string) {
	value, _, _ := unstructured.NestedString(x.object, at...)
	if q, err := resource.ParseQuantity(value); err == nil {
		x.attributes[name] = q.AsApproximateFloat64()
	}
}

func (x reader) list(at ...string) []map[string]any {
	all, _, _ := unstructured.NestedSlice(x.object, at...)
	var found []map[string]any
	for _, item := range all {
		if one, is := item.(map[string]any); is {
			found = append(found, one)
		}
	}
	return found
}

func (x reader) node() {
	x.text("engine", "status", "nodeInfo", "containerRuntimeVersion")
	x.text("arch", "status", "nodeInfo", "architecture")
	x.text("os", "status", "nodeInfo", "osImage")
	x.text("kubelet", "status", "nodeInfo", "kubeletVersion")
	x.quantity("cpu", "status", "allocatable", "cpu")
	x.quantity("memory", "status", "allocatable", "memory")
	cordoned, _, _ := unstructured.NestedBool(x.object, "spec", "unschedulable")
	x.attributes["schedulable"] = !cordoned
	for _, condition := range x.list("status", "conditions") {
		if condition["type"] == "Ready" {
			x.attributes["ready"] = condition["status"] == "True"
		}
	}
}

func (x reader) claim() {
	x.text("phase", "status", "phase")
	x.text("storage_class", "spec", "storageClassName")
	x.text("volume", "spec", "volumeName")
	x.quantity("size", "status", "capacity", "storage")
	if modes, _, _ := unstructured.NestedStringSlice(x.object, "spec", "accessModes"); len(modes) > 0 {
		x.attributes["access_modes"] = modes
	}
}

func (x reader) service() {
	x.text("service_type", "spec", "type")
	x.text("cluster_ip", "spec", "clusterIP")
	if chosen, _, _ := unstructured.NestedStringMap(x.object, "spec", "selector"); len(chosen) > 0 {
		x.attributes["selector"] = chosen
	}
	var ports []any
	for _, port := range x.list("spec", "ports") {
		ports = append(ports, port["port"])
	}
	if len(ports) > 0 {
		x.attributes["ports"] = ports
	}
}

func (x reader) pod() {
	x.text("phase", "status", "phase")
	x.text("qos_class", "status", "qosClass")
	var images []any
	cpu, memory := resource.Quantity{}, resource.Quantity{}
	for _, container := range x.list("spec", "containers") {
		images = append(images, container["image"])
		add(&cpu, container, "cpu")
		add(&memory, container, "memory")
	}
	if len(images) > 0 {
		x.attributes["images"] = images
	}
	x.attributes["cpu"], x.attributes["memory"] = cpu.AsApproximateFloat64(), memory.AsApproximateFloat64()
}

// add adds what a container requests.
func add(sum *resource.Quantity, container map[string]any, name string) {
	value, _, _ := unstructured.NestedString(container, "resources", "requests", name)
	if q, err := resource.ParseQuantity(value); err == nil {
		sum.Add(q)
	}
}
