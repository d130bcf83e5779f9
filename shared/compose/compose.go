// Package compose reads compose files by the library of the Compose specification: for descriptors, which it says all faults
// of (Read), and for orchestrators, which are handed the one file of a component (Load). What a newcomer gets wrong: whoever
// runs the file puts values for variables once more, so each dollar is doubled when a file is written.
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

	"github.com/littoral-project/littoral/shared/compose/reading"
)

// File is one compose file of a component.
type File = reading.File

// Project is what the files of a component say together.
type Project struct{ of *types.Project }

// Extension is the part of a compose file that only Littoral reads.
const Extension = "x-littoral"

// Load reads the files, each later one over the earlier ones, puts values for variables (those of x-littoral, or their
// defaults), and drops the services of profiles that x-littoral does not name. Nothing is read but the texts. Keys that
// compose does not have are left out, and a variable without a value is empty: a descriptor says so when it is handed in.
func Load(ctx context.Context, files []File) (*Project, error) {
	s, bad := open(files)
	if bad = append(bad, s.named()...); len(bad) > 0 {
		return nil, fmt.Errorf("%s: %s %s", files[bad[0].File].Name, strings.Join(bad[0].Keys, "."), bad[0].Detail)
	}
	s.leaveOutUnknown()
	p, err := s.load(ctx)
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

// load gives the models to the library.
func (s *source) load(ctx context.Context) (*types.Project, error) {
	d := types.ConfigDetails{WorkingDir: "/", Environment: maps.Clone(s.given)}
	if s.inDefault() { // which need not be declared; the loader knows that only when it names things after the project
		d.ConfigFiles = append(d.ConfigFiles, types.ConfigFile{
			Filename: "default", Config: map[string]any{"networks": map[string]any{"default": map[string]any{}}},
		})
	}
	for i, model := range s.models {
		d.ConfigFiles = append(d.ConfigFiles, types.ConfigFile{Filename: s.names[i], Config: model})
	}
	return loader.LoadWithContext(ctx, d, func(o *loader.Options) {
		const name = "littoral" // it must have one; whoever runs it gives it another
		o.SetProjectName(name, true)
		o.SkipInclude, o.SkipNormalization, o.SkipResolveEnvironment, o.ResolvePaths = true, true, true, false
		o.ResourceLoaders = nil
		o.Profiles = s.profiles
		o.Interpolate.Substitute = func(text string, _ template.Mapping) (string, error) {
			out, _, err := s.put(text)
			return out, err
		}
	})
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
