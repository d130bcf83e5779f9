package registry

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/policy/template"
	"github.com/littoral-project/littoral/shared/problem"
)

// FromDescriptor returns the policies that a descriptor asks for, ordered and named as in shared/docs/contracts.md §3.5: those
// of the top level first, then each component's own, then those implied by its requirements. name is the application's,
// which the document may lack. Nothing is rendered, and the actions have no URL yet.
//
// A policy's id derives from instance and name, so creating the policies of a descriptor twice creates them once. The
// error lists every fault with its path in the descriptor; the policies that could be made are returned along with it,
// and Policy.Path tells which of them a fault is about.
func FromDescriptor(app *appmodel.Application, instance, name string) (made []Policy, err error) {
	m := maker{app: app, instance: instance, name: name, each: func(p Policy) { made = append(made, p) }}
	err = m.all()
	return made, err
}

// Warnings lists what is odd about a descriptor, including faults in its policies: the application is accepted, and
// faulty policies are just not watched. The policies themselves, perhaps tens of thousands, are not kept in memory.
func Warnings(app *appmodel.Application) []problem.Field { return Inspect(app, func(*Policy) {}) }

// Inspect is Warnings that shows each policy that can be made, as it would be for an application without an id yet.
func Inspect(app *appmodel.Application, show func(*Policy)) []problem.Field {
	m := maker{
		app: app, instance: uuid.Nil.String(), name: cmp.Or(app.Name, "nameless"), each: func(p Policy) { show(&p) },
	}
	list := slices.Clone(app.Warnings)
	var faulty *problem.Error
	if errors.As(m.all(), &faulty) {
		for _, f := range faulty.Fields {
			list = append(list, Unwatched(app, f))
		}
	}
	return list
}

// Unwatched is the warning about a fault in a policy of the descriptor, which is not watched then.
func Unwatched(app *appmodel.Application, f problem.Field) problem.Field {
	f.Line = app.Line(f.Path, max(f.Line-1, 0))
	f.Detail += "; the policy is not watched"
	return f
}

// maker makes the policies of one descriptor.
type maker struct {
	app            *appmodel.Application
	instance, name string
	each           func(Policy)
	made           int
	taken          map[string]bool // names
	faults         problem.Faults
}

func (m *maker) all() error {
	m.taken = map[string]bool{}
	for i := range m.app.Policies {
		m.add(&m.app.Policies[i], fmt.Sprintf("policies[%d]", i))
	}
	for i := range m.app.Components {
		c := &m.app.Components[i]
		for j := range c.Policies {
			m.add(&c.Policies[j], fmt.Sprintf("components[%d].policies[%d]", i, j))
		}
		m.devices(c, fmt.Sprintf("components[%d].requirements.devices", i))
	}
	return m.faults.Err("the policies of the descriptor are not valid")
}

// draft is a policy before it has a name.
type draft struct {
	component   string // the value of the subject's field
	remediation string
	path        string
	name        string // in the descriptor
	suffix      string // tells apart several policies made from one entry
}

func (m *maker) add(d *appmodel.Policy, path string) {
	w := draft{component: m.scope(d, path), remediation: d.Remediation, path: path, name: d.Name}
	switch d.Kind {
	case appmodel.KindSecurity:
		m.template(w, d, template.SCAScore, Variables{"threshold": int64(d.Score)})
	case appmodel.KindNodeUsage:
		m.usage(w, d)
	case appmodel.KindLostTelemetry:
		m.template(w, d, template.LostTelemetry, silence(d.Timeout))
	case appmodel.KindCustom:
		m.custom(w, d)
	case appmodel.KindScheduler, appmodel.KindOther: // for placement, or without a meaning here
	}
}

// scope returns the component field of the subject: the component in whose section the policy is, or those it applies
// to.
func (m *maker) scope(d *appmodel.Policy, path string) string {
	names := d.ApplyTo
	if d.Component != "" {
		names = []string{d.Component}
	}
	for _, name := range names {
		if m.app.Component(name) == nil {
			m.faults.Add(path+".apply-to", 0, "%q is not a component of the application", short(name))
		}
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	switch len(names) {
	case 0:
		return Wildcard
	case 1:
		return names[0]
	}
	return "/" + strings.Join(names, "|") + "/" // component names are RFC 1123 labels: nothing to escape
}

// usage makes a policy for each limit. memory_threshold and requirements.memory mean the same, and the larger one
// counts. The application's own share must be excluded: otherwise its memory would have to be free a second time.
func (m *maker) usage(w draft, d *appmodel.Policy) {
	if d.Usage == nil {
		return
	}
	cpu, memory, free := template.CPUUsage, template.MemoryUsage, template.MemoryAvailable
	if d.Usage.ExcludeApp {
		cpu, memory, free = template.CPUUsageExcl, template.MemoryUsageExcl, template.MemoryAvailableExcl
	}
	least := d.Usage.MemoryFree
	if c := m.app.Component(w.component); c != nil && d.Usage.ExcludeApp && least > 0 {
		least = max(least, c.Requirements.MemoryBytes)
	}
	limits := []struct {
		suffix, template string
		value            any
		given            bool
	}{
		{"cpu", cpu, d.Usage.CPUMax, d.Usage.CPUMax > 0},
		{"memory", memory, d.Usage.MemoryMax, d.Usage.MemoryMax > 0},
		{"memory-free", free, least, least > 0},
	}
	for _, l := range limits {
		if l.given {
			w.suffix = l.suffix
			m.template(w, d, l.template, Variables{"threshold": l.value})
		}
	}
}

// silence makes the history of a component at least twice as long as the time in which its loss is noticed.
func silence(timeout time.Duration) Variables {
	v := Variables{"timeout": template.FormatDuration(timeout)}
	if timeout > 3*time.Hour {
		v["lookback"] = template.FormatDuration(2 * timeout)
	}
	return v
}

func (m *maker) custom(w draft, d *appmodel.Policy) {
	variables := own(d.Variables)
	switch {
	case d.FromTemplate != "":
		if d.Raw != nil && d.Raw["remediation"] == nil && d.Raw["remediation_action"] == nil {
			m.faults.Add(w.path+".remediation", 0, "is required with fromTemplate: what shall be done, or none")
		}
		m.template(w, d, d.FromTemplate, nil)
	case d.Spec == nil:
		m.faults.Add(w.path, 0, "needs fromTemplate or spec")
	case d.Spec.Expr != "":
		m.finish(w, d, Spec{
			Type: TelemetrySpec, Description: d.Spec.Description, Expr: d.Spec.Expr, ViolatedIf: d.Spec.ViolatedIf,
			Thresholds: maps.Clone(d.Spec.Thresholds),
		}, variables)
	default:
		constraints := make(map[string]string, len(d.Spec.Constraints))
		for name, value := range d.Spec.Constraints {
			text, ok := template.ToText(value)
			if !ok {
				m.faults.Add(w.path+".spec.constraints."+short(name), 0, "must be a text or a number")
			}
			constraints[name] = text
		}
		m.finish(w, d, Spec{Type: ConstraintsSpec, Description: d.Spec.Description, Constraints: constraints}, variables)
	}
}

// template adds a policy from a template. Values that follow from the kind of policy override the written variables.
func (m *maker) template(w draft, d *appmodel.Policy, name string, said Variables) {
	t, known := template.Lookup(name)
	if !known {
		m.faults.Add(w.path+".fromTemplate", 0, "%q is not a template: %s", short(name),
			strings.Join(template.Names(), ", "))
		return
	}
	variables := own(d.Variables)
	maps.Copy(variables, said)
	t.Complete(variables, w.path+".variables", &m.faults)
	m.finish(w, d, Spec{Type: TemplateSpec, TemplateName: name, Description: t.Description}, variables)
}

// own copies written variables; booleans become text, since a policy has only numbers and text.
func own(written map[string]any) Variables {
	v := Variables{}
	for name, value := range written {
		if truth, ok := value.(bool); ok {
			value = strconv.FormatBool(truth)
		}
		v[name] = value
	}
	return v
}

// devices adds the policies implied by requirements.devices: each device stays available on the node. Its name is
// quoted, since the template takes a regular expression.
func (m *maker) devices(c *appmodel.Component, path string) {
	for i, device := range c.Requirements.Devices {
		w := draft{
			component: c.Name, remediation: appmodel.RemediationReallocate, path: fmt.Sprintf("%s[%d]", path, i),
		}
		m.template(w, &appmodel.Policy{}, template.DeviceAvailable, Variables{"device": regexp.QuoteMeta(device)})
	}
}

// finish names the policy and validates it as a whole.
func (m *maker) finish(w draft, d *appmodel.Policy, spec Spec, variables Variables) {
	p := Policy{
		Path: w.path, Numbered: w.name == "",
		Subject: Subject{
			Type: AppSubject, AppName: m.name, AppInstance: m.instance, AppComponent: w.component,
		},
		Spec:       spec,
		Action:     Action{ExtraParams: map[string]string{RemediationParam: w.remediation}},
		Variables:  variables,
		Properties: m.properties(d, w.path),
	}
	p.Defaults()
	p.Name = m.unique(w)
	p.ID = ID(m.instance, p.Name)
	if err := p.Check(); err != nil {
		m.addFaults(w.path, err)
		return
	}
	m.made++
	m.each(p)
}

// unique is {application}-{instance}-{name as written, else the running number}. A name that is taken gets a number as
// well, since rule groups are found by name.
func (m *maker) unique(w draft) string {
	base := w.name
	if base == "" {
		base = strconv.Itoa(m.made)
	} else if w.suffix != "" {
		base += "-" + w.suffix
	}
	base = m.name + "-" + m.instance + "-" + base
	name := base
	for i := 2; m.taken[name]; i++ {
		name = base + "-" + strconv.Itoa(i)
	}
	m.taken[name] = true
	return name
}

func (m *maker) properties(d *appmodel.Policy, path string) Properties {
	p := Properties{}
	if d.Pending > 0 {
		p.PendingInterval = template.FormatDuration(max(d.Pending, time.Millisecond))
	}
	if d.Forecast > 0 {
		p.Forecast = template.FormatDuration(max(d.Forecast, time.Millisecond))
	}
	p.Confirm = d.Confirm
	if oneoff, ok := d.Properties["oneoff"]; ok {
		if p.Oneoff, ok = oneoff.(bool); !ok {
			m.faults.Add(path+".properties.oneoff", 0, "must be true or false")
		}
	}
	if interval, ok := d.Properties["interval"]; ok {
		if p.Interval, ok = interval.(string); !ok {
			m.faults.Add(path+".properties.interval", 0, "must be a duration such as 30s")
		}
	}
	return p
}

// addFaults adds the faults of a policy under its path in the descriptor.
func (m *maker) addFaults(path string, err error) {
	var e *problem.Error
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		m.faults.Add(path, 0, "%v", err)
		return
	}
	for _, f := range e.Fields {
		m.faults.Add(path+"."+f.Path, 0, "%s", f.Detail)
	}
}

// namespace is the UUID namespace of policy ids.
var namespace = uuid.MustParse("5b3f1c1e-7a7e-5d0c-9a55-4c1d0a9e7f21")

// ID is the id of the application's policy with that name.
func ID(instance, name string) string {
	return uuid.NewSHA1(namespace, []byte(instance+"\x00"+name)).String()
}

// Defaults fills in what may be left out on the wire.
func (p *Policy) Defaults() {
	if p.Action.Type == "" {
		p.Action.Type = ActionWebhook
	}
	if p.Action.HTTPMethod = strings.ToUpper(p.Action.HTTPMethod); p.Action.HTTPMethod == "" {
		p.Action.HTTPMethod = "POST"
	}
	if p.Action.ExtraParams == nil {
		p.Action.ExtraParams = map[string]string{}
	}
	if p.Variables == nil {
		p.Variables = Variables{}
	}
	if p.Status.Phase == "" {
		p.Status.Phase = Unknown
	}
	if p.Status.MeasurementBackends == nil {
		p.Status.MeasurementBackends = map[string]Backend{}
	}
	if p.Status.Events == nil {
		p.Status.Events = []Event{}
	}
}
