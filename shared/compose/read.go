package compose

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/compose-spec/compose-go/v2/format"
	"github.com/compose-spec/compose-go/v2/schema"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/littoral-project/littoral/shared/compose/reading"
)

// Read reads the files as Load does, but with all that is wrong with them, and for what a descriptor wants to know of them. It
// is the reading.Reader of whoever takes descriptors.
func Read(files []File) (out reading.Component) {
	s, bad := open(files)
	if len(bad) > 0 {
		out.Faults = bad
		return out
	}
	out.Faults = slices.Concat(s.named(), s.needed())
	out.Warnings = s.leaveOutUnknown()
	models, missing := s.filled()
	out.Faults = append(out.Faults, missing...)
	if len(missing) == 0 {
		filled := source{models: models}
		out.Faults = append(out.Faults, filled.malformed()...)
		out.Faults = append(out.Faults, filled.invalid(out.Faults)...)
	}
	if len(out.Faults) > 0 {
		return out
	}
	p, err := s.load(context.Background()) // which reads the texts alone, and waits for nothing
	if err != nil {
		for text := range leaves(err) {
			out.Faults = append(out.Faults, s.placed(text))
		}
		return out
	}
	for _, a := range HostAccess(p) {
		out.HostAccess = append(out.HostAccess, reading.Finding{Place: s.placeOf(a), Detail: a.What})
	}
	s.ask(p, &out)
	return out
}

// The largest amounts that are believed.
const (
	mostReplicas = 10_000
	mostCPU      = 1_000_000
	mostMemory   = 1 << 60 // an exbibyte
)

// malformed finds amounts, ports and volumes that the library cannot read: it would name the first of them, and not where.
func (s *source) malformed() (all []reading.Finding) {
	check := func(read func(v any) error, keys ...string) {
		s.visit(func(file int, keys []string, v any) {
			if err := read(v); err != nil {
				all = append(all, at(file, keys, "%v", err))
			}
		}, keys...)
	}
	for _, of := range []string{"reservations", "limits"} {
		check(isCPU, "services", "*", "deploy", "resources", of, "cpus")
		check(isMemory, "services", "*", "deploy", "resources", of, "memory")
	}
	check(isReplicas, "services", "*", "deploy", "replicas")
	check(isReplicas, "services", "*", "scale")
	each := func(key string, read func(text string) error) {
		s.visit(func(file int, keys []string, v any) {
			list, _ := v.([]any)
			for i, e := range list {
				if text, ok := e.(string); ok {
					if err := read(text); err != nil {
						all = append(all, at(file, append(slices.Clone(keys), strconv.Itoa(i)), "%v", err))
					}
				}
			}
		}, "services", "*", key)
	}
	each("ports", func(text string) error { _, err := types.ParsePortConfig(text); return err })
	each("volumes", func(text string) error { _, err := format.ParseVolume(text); return err })
	return all
}

func isCPU(v any) error {
	var n types.NanoCPUs
	switch v.(type) {
	case []any, map[string]any, bool:
		return fmt.Errorf("must be an amount, not %s", kindOf(v))
	}
	if err := n.DecodeMapstructure(v); err != nil || !(n >= 0) {
		return fmt.Errorf("%q is no number of cores such as 0.5", fmt.Sprint(v))
	}
	if n > mostCPU {
		return fmt.Errorf("%q is more than a million cores", fmt.Sprint(v))
	}
	return nil
}

func isMemory(v any) error {
	text, ok := v.(string)
	switch v.(type) {
	case int, float64:
		return fmt.Errorf("%v must have a unit, such as %[1]vM, or stand in quotes", v)
	}
	if !ok {
		return fmt.Errorf("must be an amount, not %s", kindOf(v))
	}
	var n types.UnitBytes
	if err := n.DecodeMapstructure(text); err != nil {
		return fmt.Errorf("%q is no amount of memory such as 200M or 1gb", text)
	}
	if n < 0 || n > mostMemory { // the library lets an amount run over
		return fmt.Errorf("%q is more than an exbibyte", text)
	}
	return nil
}

func isReplicas(v any) error {
	n, err := strconv.Atoi(fmt.Sprint(v))
	if err != nil || n < 0 || n > mostReplicas {
		return fmt.Errorf("must be a whole number from 0 to %d", mostReplicas)
	}
	return nil
}

func kindOf(v any) string {
	switch v.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	}
	return fmt.Sprintf("%q", fmt.Sprint(v))
}

// compiled is the schema of the specification. The library holds files against it too, but says only one thing that is wrong.
var compiled = sync.OnceValues(func() (*jsonschema.Schema, error) {
	const name = "compose-spec.json"
	text, err := jsonschema.UnmarshalJSON(strings.NewReader(schema.Schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.RegisterFormat(&jsonschema.Format{Name: "duration", Validate: func(v any) error {
		_, err := time.ParseDuration(fmt.Sprint(v))
		return err
	}})
	if err := c.AddResource(name, text); err != nil {
		return nil, err
	}
	return c.Compile(name)
})

// invalid holds the files against the schema, but for what is at fault already.
func (s *source) invalid(known []reading.Finding) (all []reading.Finding) {
	said := map[string]bool{}
	for _, f := range known {
		said[fmt.Sprint(f.Place)] = true
	}
	schema, err := compiled()
	for i, model := range s.models {
		var refused *jsonschema.ValidationError
		if err == nil {
			errors.As(schema.Validate(model), &refused)
		}
		wrong := deepest(refused)
		for _, e := range wrong {
			if _, follows := e.ErrorKind.(*kind.FalseSchema); follows && len(wrong) > 1 {
				continue // what could not be evaluated beside something wrong
			}
			if f := at(i, e.InstanceLocation, "%s", sentence(e)); !said[fmt.Sprint(f.Place)] {
				all = append(all, f)
			}
		}
	}
	if err != nil {
		all = append(all, at(0, nil, "cannot be checked: %v", err))
	}
	return all
}

// deepest returns what is wrong below an error: of alternatives that all do not fit, the one that fits best.
func deepest(e *jsonschema.ValidationError) (all []*jsonschema.ValidationError) {
	if e == nil {
		return nil
	}
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	for _, cause := range e.Causes {
		all = append(all, deepest(cause)...)
	}
	switch e.ErrorKind.(type) {
	case *kind.OneOf, *kind.AnyOf:
		best := slices.MaxFunc(all, func(a, b *jsonschema.ValidationError) int { return fit(a) - fit(b) })
		if len(best.InstanceLocation) == len(e.InstanceLocation) {
			return []*jsonschema.ValidationError{oneKind(best, all)}
		}
		return []*jsonschema.ValidationError{best}
	}
	return all
}

// fit is how far an alternative fits: a value of another kind does not at all.
func fit(e *jsonschema.ValidationError) int {
	n := 2 * len(e.InstanceLocation)
	if _, ok := e.ErrorKind.(*kind.Type); !ok {
		n++
	}
	return n
}

// oneKind is the error with the kinds that the value may have by any of the alternatives.
func oneKind(e *jsonschema.ValidationError, alternatives []*jsonschema.ValidationError) *jsonschema.ValidationError {
	var want []string
	for _, a := range alternatives {
		if t, ok := a.ErrorKind.(*kind.Type); ok {
			want = append(want, t.Want...)
		}
	}
	if t, ok := e.ErrorKind.(*kind.Type); ok {
		slices.Sort(want)
		return &jsonschema.ValidationError{
			InstanceLocation: e.InstanceLocation, ErrorKind: &kind.Type{Got: t.Got, Want: slices.Compact(want)},
		}
	}
	return e
}

var words = map[string]string{
	"object": "an object", "array": "a list", "string": "a text", "number": "a number", "integer": "a whole number",
	"boolean": "true or false", "null": "nothing",
}

func sentence(e *jsonschema.ValidationError) string {
	t, ok := e.ErrorKind.(*kind.Type)
	if !ok {
		return e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
	}
	var want []string
	for _, w := range t.Want {
		want = append(want, words[w])
	}
	return fmt.Sprintf("must be %s, not %s", strings.Join(want, " or "), words[t.Got])
}

// leaves yields the texts of the errors that were joined.
func leaves(err error) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for e := err; e != nil; e = errors.Unwrap(e) {
			if list, ok := e.(interface{ Unwrap() []error }); ok {
				for _, one := range list.Unwrap() {
					for text := range leaves(one) {
						if !yield(text) {
							return
						}
					}
				}
				return
			}
		}
		yield(strings.TrimSuffix(err.Error(), ": invalid compose project"))
	}
}

// The forms in which the library says where something is.
var (
	decoded  = regexp.MustCompile(`^'([^']+)' (.*)$`)
	replaced = regexp.MustCompile(`^error while interpolating (\S+): (.*)$`)
	dotted   = regexp.MustCompile(`^(?:validating [^:]*: )?((?:services|networks|volumes|configs|secrets)\.\S+?):? (.*)$`)
	called   = regexp.MustCompile(`\bservice "?([\w.-]+)"?`)
	brackets = regexp.MustCompile(`\[([^\]]*)\]|([^.\[\]]+)`)
)

// placed is a finding at the place that the library's text names.
func (s *source) placed(text string) reading.Finding {
	f := reading.Finding{Place: s.place(), Detail: text}
	if m := decoded.FindStringSubmatch(text); m != nil {
		var keys []string
		for _, part := range brackets.FindAllStringSubmatch(m[1], -1) {
			keys = append(keys, part[1]+part[2])
		}
		f.Place, f.Detail = s.place(keys...), m[2]
		return f
	}
	for _, form := range []*regexp.Regexp{replaced, dotted} {
		if m := form.FindStringSubmatch(text); m != nil {
			f.Place, f.Detail = s.along(m[1]), m[2]
			return f
		}
	}
	if m := called.FindStringSubmatch(text); m != nil {
		f.Place = s.place("services", m[1])
	}
	return f
}

// along is the place of keys that stand between dots, of which keys have some themselves.
func (s *source) along(path string) reading.Place {
	best := s.place()
	for i, model := range s.models {
		var keys []string
		for v, rest := any(model), path; rest != ""; {
			m, _ := v.(map[string]any)
			key := ""
			for k := range m {
				if (rest == k || strings.HasPrefix(rest, k+".")) && len(k) > len(key) {
					key = k
				}
			}
			if key == "" {
				break
			}
			keys, v, rest = append(keys, key), m[key], strings.TrimPrefix(strings.TrimPrefix(rest, key), ".")
		}
		if len(keys) >= len(best.Keys) {
			best = reading.Place{File: i, Keys: keys}
		}
	}
	return best
}

// placeOf is where the access stands. A volume of a service is known by what it is in the container.
func (s *source) placeOf(a Access) reading.Place {
	if a.Target == "" {
		return s.place(a.Keys...)
	}
	for i := len(s.models) - 1; i >= 0; i-- {
		list, _ := child(child(child(any(s.models[i]), "services"), a.Keys[1]), "volumes").([]any)
		for n, e := range list {
			target, _ := child(e, "target").(string)
			if text, ok := e.(string); ok {
				text, _, _ = s.put(text) // it has its values
				v, _ := format.ParseVolume(text)
				target = v.Target
			}
			if out, _, _ := s.put(target); out == a.Target {
				return reading.Place{File: i, Keys: append(slices.Clone(a.Keys), strconv.Itoa(n))}
			}
		}
	}
	return s.place(a.Keys...)
}

// ask sums up what the services that run reserve, or else their limits, for each replica.
func (s *source) ask(p *types.Project, out *reading.Component) {
	add := func(sum *reading.Asked, of, key, service string, amount float64, times int) {
		if amount <= 0 {
			return
		}
		total := float64(sum.Amount) + amount*float64(times)
		sum.Amount = int64(min(total, 2*mostMemory)) // more than is believed
		sum.At = append(sum.At, s.place("services", service, "deploy", "resources", of, key))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Services)) {
		service := p.Services[name]
		if service.Deploy == nil {
			continue
		}
		times := service.GetScale()
		reserved, limits := service.Deploy.Resources.Reservations, service.Deploy.Resources.Limits
		if reserved == nil {
			reserved = &types.Resource{}
		}
		if limits == nil {
			limits = &types.Resource{}
		}
		add(&out.CPUMilli, "reservations", "cpus", name, milli(reserved.NanoCPUs), times)
		if reserved.NanoCPUs == 0 {
			add(&out.CPUMilli, "limits", "cpus", name, milli(limits.NanoCPUs), times)
		}
		add(&out.Memory, "reservations", "memory", name, float64(reserved.MemoryBytes), times)
		if reserved.MemoryBytes == 0 {
			add(&out.Memory, "limits", "memory", name, float64(limits.MemoryBytes), times)
		}
	}
}

// milli returns thousandths of a core, rounded up. The library keeps so few digits that 0.1 is a little more than that.
func milli(n types.NanoCPUs) float64 {
	return math.Ceil(math.Round(float64(n)*1e6) / 1e3)
}

// Access is something that a service would get of the machine that it runs on.
type Access struct {
	Keys   []string // to the value that asks for it
	Target string   // of a volume: where it is in the container
	What   string
}

// HostAccess lists what the services of the project would get of the machine, those of profiles that were not chosen too.
func HostAccess(p *types.Project) (all []Access) {
	const own = "host"
	services := p.AllServices()
	for _, name := range slices.Sorted(maps.Keys(services)) {
		s := services[name]
		is := func(holds bool, key, what string) {
			if holds {
				all = append(all, Access{Keys: []string{"services", name, key}, What: what})
			}
		}
		const rights = "takes rights beyond those of a container"
		is(s.Privileged, "privileged", rights)
		is(len(s.CapAdd) > 0, "cap_add", rights)
		is(len(s.SecurityOpt) > 0, "security_opt", rights)
		is(len(s.DeviceCgroupRules) > 0, "device_cgroup_rules", rights)
		is(s.UseAPISocket, "use_api_socket", rights)
		for _, of := range []struct{ key, mode string }{
			{"network_mode", s.NetworkMode},
			{"pid", s.Pid},
			{"ipc", s.Ipc},
			{"uts", s.Uts},
			{"userns_mode", s.UserNSMode},
			{"cgroup", s.Cgroup},
		} {
			is(of.mode == own, of.key, "shares the host's own")
			is(strings.HasPrefix(of.mode, types.ContainerPrefix), of.key, "joins another container")
		}
		for _, v := range s.Volumes {
			source := v.Source
			switch v.Type {
			case types.VolumeTypeTmpfs, types.VolumeTypeImage, types.VolumeTypeCluster:
				continue
			case types.VolumeTypeVolume:
				if source = bound(p.Volumes[v.Source]); source == "" {
					continue
				}
			}
			all = append(all, Access{
				Keys: []string{"services", name, "volumes"}, Target: v.Target, What: "mounts " + source + " of the host",
			})
		}
	}
	return all
}

// bound returns the directory of the host that a volume is; "" for one that the engine makes.
func bound(v types.VolumeConfig) string {
	options := strings.Split(v.DriverOpts["o"], ",")
	if device := v.DriverOpts["device"]; slices.Contains(options, "bind") || slices.Contains(options, "rbind") || strings.HasPrefix(device, "/") {
		return device
	}
	return ""
}
