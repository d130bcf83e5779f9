package descriptor

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/littoral-project/littoral/shared/appmodel"
)

// podBearers lists the kinds with pods. Such an object belongs to one component, since its pods are marked with that
// component.
var podBearers = map[string][]string{
	"":      {"Pod", "ReplicationController"},
	"apps":  {"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"},
	"batch": {"Job", "CronJob"},
}

// checkShared refuses objects that two components cannot both have in one cluster: one that each would write
// differently, over and over, and one with pods.
func (r *reader) checkShared() {
	all := map[object]*listings{}
	for i, p := range r.index.plans {
		clusters := clustersOf(&r.app.Components[i])
		for _, m := range p {
			o, ok := m.def.object()
			if !ok {
				continue
			}
			if all[o] == nil {
				all[o] = &listings{at: map[string]listing{}}
			}
			own := listing{component: i, def: m.def}
			for _, cluster := range all[o].near(clusters) {
				other, there := all[o].at[cluster]
				if !there {
					continue
				}
				if problem := o.clash(own, other); problem != "" {
					r.fault(m.path, m.node, "the %s %q is in component %q already%s", shorten(o.kind), shorten(o.name),
						shorten(r.app.Components[other.component].Name), problem)
					break
				}
			}
			all[o].add(clusters, own)
		}
	}
}

// object identifies an object in a cluster; its namespace is that of the application.
type object struct{ group, kind, name string }

// object returns the identity of the definition in a cluster; ok is false if it is no Kubernetes object.
func (d *definition) object() (o object, ok bool) {
	if d == nil {
		return o, false
	}
	group, _, grouped := strings.Cut(scalar(d.node, "apiVersion"), "/")
	if !grouped {
		group = ""
	}
	o = object{group: group, kind: d.kind, name: metadataName(d.node)}
	return o, o.kind != "" && o.name != ""
}

// listing is an object in the manifests of a component.
type listing struct {
	component int
	def       *definition
}

// clash says why two listings of the object cannot be in one cluster; "" if they can.
func (o object) clash(a, b listing) string {
	switch {
	case a.component == b.component:
		return ""
	case slices.Contains(podBearers[o.group], o.kind):
		return "; what bears pods belongs to one component"
	case !a.def.same(b.def):
		return ", with other content; give it the same in both, or two names"
	}
	return ""
}

// same reports whether both have the same content, however it is written.
func (d *definition) same(other *definition) bool {
	return d == other || d.text != "" && d.text == other.text || d.content() == other.content()
}

// content is the object with its keys in order.
func (d *definition) content() string {
	if d.ordered == "" {
		text, err := json.Marshal(plain(d.node))
		if err != nil {
			return d.text
		}
		d.ordered = string(text)
	}
	return d.ordered
}

// listings are the listings of one object: the first for each cluster, and under "" the first of a component that may
// be in any.
type listings struct {
	at    map[string]listing
	order []string
}

// near returns the keys of the listings that may be in one of the clusters; of all when no clusters are given.
func (l *listings) near(clusters []string) []string {
	if len(clusters) == 0 {
		return l.order
	}
	return append(clusters[:len(clusters):len(clusters)], "")
}

func (l *listings) add(clusters []string, own listing) {
	if len(clusters) == 0 {
		clusters = []string{""}
	}
	for _, cluster := range clusters {
		if _, there := l.at[cluster]; !there {
			l.at[cluster] = own
			l.order = append(l.order, cluster)
		}
	}
}

// clustersOf returns where the component may run; none when that is not fixed.
func clustersOf(c *appmodel.Component) []string {
	var names []string
	for _, t := range c.Targets {
		if t.Cluster == "" {
			return nil
		}
		names = append(names, t.Cluster)
	}
	return distinct(names)
}
