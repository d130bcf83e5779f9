package collect

import (
	"cmp"
	"slices"
	"strings"

	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/topology"
)

// podID identifies pods besides their uid: cluster, namespace, name.
type podID [3]string

// pods finds the pods made so far; they are changed in place and attached to nodes at the end.
type pods struct {
	all    []*pod
	byUID  map[string]*pod
	byName map[podID]*pod
}

type pod struct {
	key string
	at  *host    // nil when the node is not known
	in  *cluster // where it is listed then
	topology.Pod
}

// addPods adds pods, their containers and what these use.
func (b *builder) addPods() {
	p := &pods{byUID: map[string]*pod{}, byName: map[podID]*pod{}}
	for _, s := range b.samples(qPod) {
		b.addPod(p, s.Labels)
	}
	for _, s := range b.samples(qPhase) {
		if pod := p.find(s.Labels); pod != nil {
			pod.Status = s.Labels["phase"]
		}
	}
	for _, s := range b.samples(qWorkload) {
		b.addWorkload(p, s.Labels)
	}
	for _, s := range b.samples(qContainer) {
		if pod := p.find(s.Labels); pod != nil {
			pod.container(s.Labels["container"])
		}
	}
	for _, s := range b.samples(qContainerCPU) {
		p.measure(s.Labels, func(c *topology.Container) { c.CPUUsage = positive(s.Value) })
	}
	for _, s := range b.samples(qContainerMem) {
		p.measure(s.Labels, func(c *topology.Container) { c.ContainerMemory = positive(s.Value) })
	}
	for _, pod := range p.all {
		pod.NumberOfContainers, pod.NumberOfApps = len(pod.Container), len(pod.Workload)
		if pod.at != nil {
			put(&pod.at.Pod, pod.key, pod.Pod)
		} else {
			put(&pod.in.Pod, pod.key, pod.Pod)
		}
	}
}

func (b *builder) addPod(p *pods, l map[string]string) {
	made := &pod{at: b.nodeOf(l), in: b.clusterOf(l)}
	if made.at != nil {
		made.in = made.at.in
	}
	if made.in == nil || l["pod"] == "" {
		return
	}
	made.Name, made.IP = join(l["namespace"], l["pod"]), l["pod_ip"]
	made.key = cmp.Or(l["uid"], made.Name)
	p.add(made, l["uid"], podID{l[label.Cluster], l["namespace"], l["pod"]})
}

func (p *pods) add(made *pod, uid string, name podID) {
	if p.byUID[uid] != nil {
		return // a second series is an older state of the same pod
	}
	p.all = append(p.all, made)
	if uid != "" {
		p.byUID[uid] = made
	}
	p.byName[name] = made
}

// find understands the labels of kube-state-metrics, of the kubelet receiver (k8s_...) and of cAdvisor.
func (p *pods) find(l map[string]string) *pod {
	if uid := cmp.Or(l["k8s_pod_uid"], l["uid"], l["container_id"]); uid != "" {
		return p.byUID[uid]
	}
	namespace, name := cmp.Or(l["k8s_namespace_name"], l["namespace"]), cmp.Or(l["k8s_pod_name"], l["pod"])
	return p.byName[podID{l[label.Cluster], namespace, name}]
}

// measure sets a reading of one container. Series without a container name are sums over the pod.
func (p *pods) measure(l map[string]string, set func(*topology.Container)) {
	found := p.find(l)
	if found == nil {
		return
	}
	name := cmp.Or(l["k8s_container_name"], l["container"], l["container_name"])
	if name == "" && l["container_id"] != "" {
		name = bare(found.Name)
	}
	if name == "" || name == "POD" { // the sandbox
		return
	}
	c := found.container(name)
	set(&c)
	found.Container[name] = c
}

// container returns the pod's container of that name, made when missing.
func (p *pod) container(name string) topology.Container {
	c, known := p.Container[name]
	if !known {
		c = topology.Container{Name: name, IP: p.IP}
		if p.at != nil {
			c.Node = p.at.Name
		}
		put(&p.Container, name, c)
	}
	return c
}

// addWorkload sets the application of a pod. On a Docker host no other series has the container, so it is made here.
func (b *builder) addWorkload(p *pods, l map[string]string) {
	found, h := p.byUID[l["id"]], b.hostOf(l)
	if found == nil && h != nil && h.Engine == topology.Docker && l["id"] != "" {
		found = &pod{key: l["id"], at: h, in: h.in}
		found.Name, found.Status = l["name"], status(l["status"])
		found.container(bare(found.Name))
		p.add(found, l["id"], podID{})
	}
	instance := l[label.AppInstance]
	if found == nil || instance == "" {
		return
	}
	put(&found.Workload, instance, topology.Workload{
		AppName: l[label.AppName], AppInstance: instance, AppComponent: l[label.AppComponent],
	})
}

// status translates a workload's status into a phase of Kubernetes.
func status(workload string) string {
	known := []string{"Pending", "Running", "Failed", "Unknown"}
	if i := slices.IndexFunc(known, func(s string) bool { return strings.EqualFold(s, workload) }); i >= 0 {
		return known[i]
	}
	if workload == "exited" {
		return "Succeeded"
	}
	return workload
}

func join(namespace, name string) string { return namespace + "__" + name }

func bare(name string) string {
	if _, found, ok := strings.Cut(name, "__"); ok {
		return found
	}
	return name
}
