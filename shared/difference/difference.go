// Package difference says which fields differ between two descriptors of an application, and which of these make pods
// restart.
package difference

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/appmodel"
)

// Field is one difference. Of an object that is added or removed as a whole there are no fields, and neither From nor To.
type Field struct {
	Component string `json:"component,omitempty"` // empty for the application itself
	Object    string `json:"object,omitempty"`    // of the component's manifests, as Kind/name; "compose" for a Compose file
	Path      string `json:"path,omitempty"`      // such as spec.replicas or containers[web].image; empty for the whole
	Action    string `json:"action"`              // added, removed, changed
	From      any    `json:"from,omitempty"`
	To        any    `json:"to,omitempty"`
	Restarts  bool   `json:"restarts"` // what runs is replaced by new pods or containers
}

// What happened to a field.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// Most bounds how many fields are listed; of two documents that have nothing in common there may be thousands.
const Most = 500

// Fields lists what differs, in the order of the components, then of the paths; at most Most.
func Fields(before, now *appmodel.Application) []Field {
	d := &differ{}
	d.value("", general(before), general(now))
	names := slices.Concat(before.Components, now.Components)
	seen := map[string]bool{}
	for i := range names {
		name := names[i].Name
		if seen[name] {
			continue
		}
		seen[name] = true
		d.component(name, before.Component(name), now.Component(name))
	}
	if len(d.fields) > Most {
		d.fields = d.fields[:Most]
	}
	return d.fields
}

// general is what an application has beside its components.
func general(a *appmodel.Application) map[string]any {
	all := map[string]any{"policies": policies(a.Policies)}
	set(all, "description", a.Description)
	if a.MixedTypes {
		all["mixedTypes"] = true
	}
	return all
}

func (d *differ) component(name string, before, now *appmodel.Component) {
	d.at = Field{Component: name}
	defer func() { d.at = Field{} }()
	switch {
	case before == nil:
		d.add(Field{Action: Added})
		return
	case now == nil:
		d.add(Field{Action: Removed})
		return
	}
	if before.Type != now.Type {
		d.add(Field{Path: "type", Action: Changed, From: before.Type, To: now.Type, Restarts: true})
	}
	d.value("", plain(before), plain(now))
	old, fresh := objects(before.Manifests), objects(now.Manifests)
	for _, o := range keys(old, fresh) {
		d.at.Object, d.kind = o, kindOf(o)
		was, had := old[o]
		is, has := fresh[o]
		switch {
		case !had:
			d.add(Field{Action: Added})
		case !has:
			d.add(Field{Action: Removed})
		default:
			d.value("", was, is)
		}
	}
	d.at.Object, d.kind = "", ""
}

// plain is a component without its objects.
func plain(c *appmodel.Component) map[string]any {
	need := c.Requirements
	requirements := map[string]any{}
	set(requirements, "architecture", need.Architecture)
	if need.CPUMilli > 0 {
		requirements["cpu"] = quantity(need.CPUMilli)
	}
	if need.MemoryBytes > 0 {
		requirements["memory"] = bytes(need.MemoryBytes)
	}
	for name, value := range map[string]any{
		"devices": need.Devices, "nodeLabel": need.NodeLabel, "resources": need.Resources,
	} {
		if v := reflect.ValueOf(value); !v.IsNil() && (v.Kind() == reflect.Pointer || v.Len() > 0) {
			requirements[name] = generic(value)
		}
	}
	all := map[string]any{"requirements": requirements, "policies": policies(c.Policies)}
	if len(c.Targets) > 0 {
		all["targets"] = generic(c.Targets)
	}
	if len(c.Communication.Outgoing)+len(c.Communication.Incoming) > 0 {
		all["communication"] = generic(c.Communication)
	}
	if len(c.Near.Data)+len(c.Near.Users) > 0 {
		all["near"] = generic(c.Near)
	}
	if c.Scaling != nil {
		all["scaling"] = generic(c.Scaling)
	}
	if c.DPE != nil {
		all["dpe"] = generic(c.DPE)
	}
	return all
}

func set(m map[string]any, name, value string) {
	if value != "" {
		m[name] = value
	}
}

// quantity writes thousandths of a core as descriptors have them.
func quantity(milli int64) string {
	if milli%1000 == 0 {
		return strconv.FormatInt(milli/1000, 10)
	}
	return strconv.FormatInt(milli, 10) + "m"
}

// bytes writes an amount of memory in the largest unit that leaves no rest.
func bytes(n int64) string {
	for _, unit := range []struct {
		name string
		size int64
	}{{"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10}} {
		if n%unit.size == 0 {
			return strconv.FormatInt(n/unit.size, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// policies are those of a section by name; one without a name has that of its kind, with a number if there are several.
func policies(list []appmodel.Policy) map[string]any {
	all := map[string]any{}
	for i := range list {
		p := &list[i]
		name := cmp.Or(p.Name, p.Type, string(p.Kind))
		key := name
		for n := 2; all[key] != nil; n++ {
			key = fmt.Sprintf("%s %d", name, n)
		}
		all[key] = whole{generic(p.Raw)}
	}
	return all
}

// whole is a value that is added or removed as one, but whose changes are shown field by field.
type whole struct{ value any }

// objects are the manifests of a component by kind and name.
func objects(list []appmodel.Manifest) map[string]any {
	all := map[string]any{}
	for i := range list {
		m := &list[i]
		name := m.Kind + "/" + m.Name
		if m.Kind == "" {
			name = "compose"
		}
		key := name
		for n := 2; all[key] != nil; n++ {
			key = fmt.Sprintf("%s %d", name, n)
		}
		var object any
		if err := yaml.Unmarshal([]byte(m.YAML), &object); err != nil || object == nil {
			object = m.YAML // only named
		}
		all[key] = object
	}
	return all
}

func kindOf(object string) string {
	kind, _, _ := strings.Cut(object, "/")
	return kind
}

// generic is a value in the types of encoding/json.
func generic(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	var out any
	_ = json.Unmarshal(text, &out)
	return out
}

// differ collects fields; at says where it is.
type differ struct {
	at     Field
	kind   string
	fields []Field
}

func (d *differ) add(f Field) {
	f.Component, f.Object = d.at.Component, d.at.Object
	f.Restarts = f.Restarts || d.restarts(f)
	d.fields = append(d.fields, f)
}

// restarts tells, as Kubernetes does it, whether a changed field of an object gives new pods: any of a pod template, and
// any of a pod or a Compose file.
func (d *differ) restarts(f Field) bool {
	if f.Path == "" || d.at.Object == "" {
		return false
	}
	switch d.kind {
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet":
		return strings.HasPrefix(f.Path, "spec.template.")
	case "Pod":
		return strings.HasPrefix(f.Path, "spec.")
	case "compose":
		return true
	}
	return false
}

func (d *differ) value(path string, before, now any) {
	old, was := before.(whole)
	fresh, is := now.(whole)
	if was && is {
		before, now = old.value, fresh.value
	}
	a, aMap := before.(map[string]any)
	b, bMap := now.(map[string]any)
	if aMap && bMap {
		d.mapping(path, a, b, dotted)
		return
	}
	x, xList := named(before)
	y, yList := named(now)
	if xList && yList {
		d.mapping(path, x, y, bracketed)
		return
	}
	if !reflect.DeepEqual(before, now) {
		d.add(Field{Path: path, Action: Changed, From: before, To: now})
	}
}

func (d *differ) mapping(path string, before, now map[string]any, join func(path, key string) string) {
	for _, key := range keys(before, now) {
		at := join(path, key)
		if path == "policies" {
			at = bracketed(path, key)
		}
		was, had := before[key]
		is, has := now[key]
		switch {
		case !had:
			d.gone(at, is, Added)
		case !has:
			d.gone(at, was, Removed)
		default:
			d.value(at, was, is)
		}
	}
}

// gone adds a field that only one side has.
func (d *differ) gone(path string, v any, action string) {
	f := Field{Path: path, Action: action}
	switch v.(type) {
	case map[string]any, whole:
	default:
		if action == Added {
			f.To = v
		} else {
			f.From = v
		}
	}
	d.add(f)
}

func dotted(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func bracketed(path, key string) string { return path + "[" + key + "]" }

// named is a list whose elements all have a name of their own, such as containers, by name.
func named(v any) (map[string]any, bool) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return nil, false
	}
	all := map[string]any{}
	for _, one := range list {
		m, _ := one.(map[string]any)
		name, _ := m["name"].(string)
		if name == "" || all[name] != nil {
			return nil, false
		}
		all[name] = m
	}
	return all, true
}

// keys are those of both, in order.
func keys(a, b map[string]any) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}
