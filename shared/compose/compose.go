// Package compose reads compose files by the library of the Compose specification, and writes the one file of a component
// that an engine is handed. What a newcomer gets wrong: whoever runs the file puts values for variables once more, so each
// dollar is doubled when a file is written.
package compose

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/template"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/littoral-project/littoral/shared/compose/variables"
)

// File is one compose file of a component.
type File struct{ Name, Text string }

// Project is what the files of a component say together.
type Project struct{ of *types.Project }

// Extension is the part of a compose file that only Littoral reads.
const Extension = "x-littoral"

// extension is the form of the part.
type extension struct {
	Profiles  []string          `mapstructure:"profiles"`
	Variables map[string]string `mapstructure:"variables"`

	inDefault bool // not of the part: a service names the network "default"
}

// Load reads the files, each later one over the earlier ones, puts values for variables (those of x-littoral, or their
// defaults), and drops the services of profiles that x-littoral does not name. Nothing is read but the texts.
func Load(ctx context.Context, files []File) (*Project, error) {
	given, err := extensions(ctx, files)
	if err != nil {
		return nil, err
	}
	if given.inDefault { // which need not be declared; the loader knows that only when it names things after the project
		files = append([]File{{Name: "default", Text: "networks: {default: {}}"}}, files...)
	}
	p, err := loader.LoadWithContext(ctx, details(files, given.Variables), quiet, func(o *loader.Options) {
		o.Profiles = given.Profiles
		o.SkipConsistencyCheck = false
		o.Interpolate.Substitute = substitute
	})
	if err != nil {
		return nil, err
	}
	if len(p.Services) == 0 {
		return nil, errors.New("no service is left")
	}
	p.Name = ""
	delete(p.Extensions, Extension)
	return &Project{p}, nil
}

// substitute reads variables as the descriptor does. What it accepted before it refused variables without a value still has
// them empty.
func substitute(text string, value template.Mapping) (string, error) {
	out, _, err := variables.Put(text, value)
	return out, err
}

// quiet keeps the loader from touching files, naming things after the project, and changing paths.
func quiet(o *loader.Options) {
	const name = "littoral" // it must have one; whoever runs it gives it another
	o.SetProjectName(name, true)
	o.SkipInclude, o.SkipNormalization, o.SkipResolveEnvironment, o.ResolvePaths = true, true, true, false
	o.ResourceLoaders = nil
}

func details(files []File, variables map[string]string) types.ConfigDetails {
	d := types.ConfigDetails{WorkingDir: "/", Environment: types.Mapping(variables)}
	for _, f := range files {
		d.ConfigFiles = append(d.ConfigFiles, types.ConfigFile{Filename: f.Name, Content: []byte(f.Text)})
	}
	return d
}

// inDefault reports whether a service names the network that all are in which name none.
func inDefault(model map[string]any) bool {
	const name = "default"
	services, _ := model["services"].(map[string]any)
	for _, s := range services {
		service, _ := s.(map[string]any)
		switch in := service["networks"].(type) {
		case []any:
			if slices.Contains(in, any(name)) {
				return true
			}
		case map[string]any:
			if _, there := in[name]; there {
				return true
			}
		}
	}
	return false
}

// extensions reads what the files say to Littoral, before anything else is read.
func extensions(ctx context.Context, files []File) (extension, error) {
	all := extension{Variables: map[string]string{}}
	for _, f := range files {
		model, err := loader.LoadModelWithContext(ctx, details([]File{f}, nil), quiet, func(o *loader.Options) {
			o.SkipInterpolation, o.SkipValidation, o.SkipConsistencyCheck, o.SkipExtends = true, true, true, true
		})
		if err != nil {
			return all, err
		}
		if err := travels(model); err != nil {
			return all, fmt.Errorf("%s: %w", f.Name, err)
		}
		all.inDefault = all.inDefault || inDefault(model)
		part, ok := model[Extension]
		if !ok {
			continue
		}
		var said extension
		if err := loader.Transform(part, &said); err != nil {
			return all, fmt.Errorf("%s: %s: %w", f.Name, Extension, err)
		}
		all.Profiles = append(all.Profiles, said.Profiles...)
		maps.Copy(all.Variables, said.Variables)
	}
	return all, nil
}

// travels refuses a file that names others: the library would read those of the machine that this runs on.
func travels(model map[string]any) error {
	if model["include"] != nil {
		return errors.New("include names a file, and none travels with it")
	}
	services, _ := model["services"].(map[string]any)
	for name, s := range services {
		service, _ := s.(map[string]any)
		extends, _ := service["extends"].(map[string]any)
		if service["env_file"] != nil || service["label_file"] != nil || extends["file"] != nil {
			return fmt.Errorf("services.%s names a file, and none travels with it", name)
		}
	}
	return nil
}

// Text is the file that an engine is handed.
func (p *Project) Text() (string, error) {
	text, err := p.of.MarshalYAML()
	return string(bytes.ReplaceAll(text, []byte("$"), []byte("$$"))), err
}

// Of is what the specification's library knows of the project, for an engine that carries it out itself.
func (p *Project) Of() *types.Project { return p.of }

// Services names the services, with how often each runs, in order.
func (p *Project) Services() (names []string, replicas map[string]int64) {
	replicas = map[string]int64{}
	for name, s := range p.of.Services {
		replicas[name] = int64(s.GetScale())
	}
	return slices.Sorted(maps.Keys(replicas)), replicas
}

// each changes each service.
func (p *Project) each(change func(*types.ServiceConfig)) {
	for name, s := range p.of.Services {
		change(&s)
		p.of.Services[name] = s
	}
}

// Label puts the labels on each service's containers.
func (p *Project) Label(labels map[string]string) {
	p.each(func(s *types.ServiceConfig) {
		if s.Labels == nil {
			s.Labels = types.Labels{}
		}
		maps.Copy(s.Labels, labels)
	})
}

// Scale adds to the replicas of each service that runs at all.
func (p *Project) Scale(next func(replicas int64) int64) {
	p.each(func(s *types.ServiceConfig) {
		if n := int64(s.GetScale()); n > 0 {
			s.SetScale(int(next(n)))
		}
	})
}

// Reserve changes what each service reserves, in thousandths of a core and bytes. A limit that would be lower is raised.
func (p *Project) Reserve(next func(cpuMilli, memoryBytes int64) (int64, int64)) {
	p.each(func(s *types.ServiceConfig) {
		deploys(s)
		have := &types.Resource{}
		if s.Deploy.Resources.Reservations != nil {
			copied := *s.Deploy.Resources.Reservations
			have = &copied
		}
		const milli = 1000
		cpu, memory := next(int64(have.NanoCPUs.Value()*milli+0.5), int64(have.MemoryBytes))
		have.NanoCPUs, have.MemoryBytes = types.NanoCPUs(float32(cpu)/milli), types.UnitBytes(memory)
		s.Deploy.Resources.Reservations = have
		if limits := s.Deploy.Resources.Limits; limits != nil {
			raised := *limits
			if raised.NanoCPUs > 0 {
				raised.NanoCPUs = max(raised.NanoCPUs, have.NanoCPUs)
			}
			if raised.MemoryBytes > 0 {
				raised.MemoryBytes = max(raised.MemoryBytes, have.MemoryBytes)
			}
			s.Deploy.Resources.Limits = &raised
		}
	})
}

// Attach gives each service the devices that the component requires: a path of the host, "usb" for its bus, or "gpu" for
// all graphics processors. A service that names devices of its own has chosen, and gets no others.
func (p *Project) Attach(devices []string) error {
	for _, d := range devices {
		if !strings.HasPrefix(d, "/") && d != "usb" && d != "gpu" {
			return fmt.Errorf("device %q is no path such as /dev/video0, and neither usb nor gpu", d)
		}
	}
	p.each(func(s *types.ServiceConfig) {
		if len(s.Devices) > 0 {
			return
		}
		for _, d := range slices.Compact(slices.Sorted(slices.Values(devices))) {
			switch d {
			case "gpu":
				p.gpus(s)
				continue
			case "usb":
				d = "/dev/bus/usb"
			}
			s.Devices = append(s.Devices, types.DeviceMapping{Source: d, Target: d, Permissions: "rwm"})
		}
	})
	return nil
}

// deploys gives the service a section deploy, which repeats how often it runs.
func deploys(s *types.ServiceConfig) {
	if s.Deploy == nil {
		s.Deploy = &types.DeployConfig{}
		s.SetScale(s.GetScale())
	}
}

func (p *Project) gpus(s *types.ServiceConfig) {
	deploys(s)
	have := &types.Resource{}
	if s.Deploy.Resources.Reservations != nil {
		copied := *s.Deploy.Resources.Reservations
		have = &copied
	}
	if len(have.Devices) == 0 {
		have.Devices = []types.DeviceRequest{{Capabilities: []string{"gpu"}, Count: -1}} // all
	}
	s.Deploy.Resources.Reservations = have
}

// Replace takes over services and whatever else another project defines; what that one does not name stays.
func (p *Project) Replace(by *Project) {
	maps.Copy(p.of.Services, by.of.Services)
	merge(&p.of.Networks, by.of.Networks)
	merge(&p.of.Volumes, by.of.Volumes)
	merge(&p.of.Configs, by.of.Configs)
	merge(&p.of.Secrets, by.of.Secrets)
}

func merge[M ~map[string]V, V any](into *M, from M) {
	if *into == nil {
		*into = M{}
	}
	maps.Copy(*into, from)
}
