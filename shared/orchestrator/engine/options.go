package engine

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/docker/go-units"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/littoral-project/littoral/shared/compose"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
)

const byDefault = "default" // the network of services that name none

// used are the networks that the services are in.
func used(p *types.Project) map[string]bool {
	all := map[string]bool{}
	for _, s := range p.Services {
		for _, name := range networksOf(s) {
			all[name] = true
		}
	}
	return all
}

// networksOf are the networks of a service, the first of which it is made in.
func networksOf(s types.ServiceConfig) []string {
	switch {
	case s.NetworkMode != "":
		return nil
	case len(s.Networks) == 0:
		return []string{byDefault}
	}
	return s.NetworksByPriority()
}

func networkName(c *copied, p *types.Project, name string) string {
	if n := p.Networks[name]; bool(n.External) {
		return nonEmpty(n.Name, name)
	}
	return c.project() + "_" + name
}

func volumeName(c *copied, p *types.Project, name string) string {
	if v := p.Volumes[name]; bool(v.External) {
		return nonEmpty(v.Name, name)
	}
	return c.project() + "_" + name
}

func nonEmpty(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// optionsOf is what the engine is asked for when it makes a container.
func optionsOf(c *copied, p *types.Project, s types.ServiceConfig, w instance) (client.ContainerCreateOptions, error) {
	labels := c.of(s.Labels)
	labels[composeProject], labels[composeService], labels[composeNumber] = c.project(), w.service, strconv.Itoa(w.number)
	labels[composeOneOff], labels[composeHash], labels[labelDigest] = "False", w.digest, w.digest
	config := &container.Config{
		Hostname: s.Hostname, Domainname: s.DomainName, User: s.User, Tty: s.Tty, OpenStdin: s.StdinOpen,
		Cmd: s.Command, Entrypoint: s.Entrypoint, Image: s.Image, WorkingDir: s.WorkingDir, Labels: labels,
		StopSignal: s.StopSignal, Healthcheck: healthcheck(s.HealthCheck), ExposedPorts: network.PortSet{},
	}
	for _, name := range slices.Sorted(maps.Keys(s.Environment)) {
		if value := s.Environment[name]; value != nil {
			config.Env = append(config.Env, name+"="+*value)
		}
	}
	if s.StopGracePeriod != nil {
		seconds := int(math.Ceil(time.Duration(*s.StopGracePeriod).Seconds()))
		config.StopTimeout = &seconds
	}
	host, err := hostOf(c, p, s)
	if err != nil {
		return client.ContainerCreateOptions{}, err
	}
	if err := ports(s, config, host); err != nil {
		return client.ContainerCreateOptions{}, err
	}
	options := client.ContainerCreateOptions{Config: config, HostConfig: host, Name: w.name}
	if in := networksOf(s); len(in) > 0 {
		first := networkName(c, p, in[0])
		host.NetworkMode = container.NetworkMode(first)
		settings, err := endpoint(s, in[0], w)
		if err != nil {
			return options, err
		}
		options.NetworkingConfig = &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{first: settings}}
	}
	return options, nil
}

// endpoint is how a container is called in a network, and at which address it is, if the file says so.
func endpoint(s types.ServiceConfig, name string, w instance) (*network.EndpointSettings, error) {
	settings := &network.EndpointSettings{}
	in := s.Networks[name]
	if in.ServiceNameAliasEnabled() {
		settings.Aliases = append(settings.Aliases, w.service)
	}
	if s.ContainerName != "" {
		settings.Aliases = append(settings.Aliases, s.ContainerName)
	}
	if in == nil {
		return settings, nil
	}
	settings.Aliases = append(settings.Aliases, in.Aliases...)
	settings.DriverOpts = in.DriverOpts
	if in.Ipv4Address == "" && in.Ipv6Address == "" {
		return settings, nil
	}
	var four, six error
	settings.IPAMConfig = &network.EndpointIPAMConfig{}
	if in.Ipv4Address != "" {
		settings.IPAMConfig.IPv4Address, four = netip.ParseAddr(in.Ipv4Address)
	}
	if in.Ipv6Address != "" {
		settings.IPAMConfig.IPv6Address, six = netip.ParseAddr(in.Ipv6Address)
	}
	if err := errors.Join(four, six); err != nil {
		return nil, orchestrator.Refuse(orchestrator.ReasonBadManifest, "service %s: networks: %s: %v", s.Name, name, err)
	}
	return settings, nil
}

// ipam is where a network takes its addresses from; nil = the engine chooses.
func ipam(n types.NetworkConfig) (*network.IPAM, error) {
	if n.Ipam.Driver == "" && len(n.Ipam.Config) == 0 {
		return nil, nil //nolint:nilnil // as the engine takes it
	}
	all := &network.IPAM{Driver: nonEmpty(n.Ipam.Driver, "default"), Options: n.Ipam.Options}
	for _, pool := range n.Ipam.Config {
		var one network.IPAMConfig
		var faults [3]error
		if pool.Subnet != "" {
			one.Subnet, faults[0] = netip.ParsePrefix(pool.Subnet)
		}
		if pool.IPRange != "" {
			one.IPRange, faults[1] = netip.ParsePrefix(pool.IPRange)
		}
		if pool.Gateway != "" {
			one.Gateway, faults[2] = netip.ParseAddr(pool.Gateway)
		}
		if err := errors.Join(faults[:]...); err != nil {
			return nil, err
		}
		for name, text := range pool.AuxiliaryAddresses {
			at, err := netip.ParseAddr(text)
			if err != nil {
				return nil, err
			}
			if one.AuxAddress == nil {
				one.AuxAddress = map[string]netip.Addr{}
			}
			one.AuxAddress[name] = at
		}
		all.Config = append(all.Config, one)
	}
	return all, nil
}

// hostOf is what a container has of the machine.
func hostOf(c *copied, p *types.Project, s types.ServiceConfig) (*container.HostConfig, error) {
	host := &container.HostConfig{
		NetworkMode: networkMode(c, s), RestartPolicy: restart(s), CapAdd: s.CapAdd, CapDrop: s.CapDrop,
		DNSOptions: s.DNSOpts, DNSSearch: s.DNSSearch, ExtraHosts: s.ExtraHosts.AsList(":"), GroupAdd: s.GroupAdd,
		IpcMode: container.IpcMode(s.Ipc), PidMode: container.PidMode(s.Pid), UTSMode: container.UTSMode(s.Uts),
		UsernsMode: container.UsernsMode(s.UserNSMode), Privileged: s.Privileged, ReadonlyRootfs: s.ReadOnly,
		SecurityOpt: s.SecurityOpt, ShmSize: int64(s.ShmSize), Sysctls: s.Sysctls, Runtime: s.Runtime, Init: s.Init,
		OomScoreAdj: int(s.OomScoreAdj), Resources: resources(s),
	}
	if s.Logging != nil {
		host.LogConfig = container.LogConfig{Type: s.Logging.Driver, Config: s.Logging.Options}
	}
	for _, text := range s.DNS {
		at, err := netip.ParseAddr(text)
		if err != nil {
			return nil, orchestrator.Refuse(orchestrator.ReasonBadManifest, "service %s: dns: %q is no address", s.Name, text)
		}
		host.DNS = append(host.DNS, at)
	}
	for _, text := range s.Tmpfs {
		path, options, _ := strings.Cut(text, ":")
		if host.Tmpfs == nil {
			host.Tmpfs = map[string]string{}
		}
		host.Tmpfs[path] = options
	}
	for _, v := range s.Volumes {
		m := mount.Mount{Type: mount.Type(v.Type), Source: v.Source, Target: v.Target, ReadOnly: v.ReadOnly}
		switch v.Type {
		case types.VolumeTypeVolume:
			if v.Source != "" {
				m.Source = volumeName(c, p, v.Source)
			}
		case types.VolumeTypeTmpfs:
			if v.Tmpfs != nil {
				m.TmpfsOptions = &mount.TmpfsOptions{SizeBytes: int64(v.Tmpfs.Size)}
			}
		}
		host.Mounts = append(host.Mounts, m)
	}
	return host, nil
}

func networkMode(c *copied, s types.ServiceConfig) container.NetworkMode {
	if other, ok := strings.CutPrefix(s.NetworkMode, types.ServicePrefix); ok {
		return container.NetworkMode(types.ContainerPrefix + c.project() + "-" + other + "-1")
	}
	return container.NetworkMode(s.NetworkMode)
}

// restart is when the engine starts a container again. A component is to run, so one that names no policy is started again
// until it is stopped; compose itself would leave it.
func restart(s types.ServiceConfig) container.RestartPolicy {
	name, times, _ := strings.Cut(s.Restart, ":")
	most, _ := strconv.Atoi(times)
	if s.Deploy != nil && s.Deploy.RestartPolicy != nil && s.Restart == "" {
		p := s.Deploy.RestartPolicy
		name = map[string]string{"none": "no", "on-failure": "on-failure"}[p.Condition]
		if p.MaxAttempts != nil && name == "on-failure" {
			most = int(min(*p.MaxAttempts, math.MaxInt32))
		}
	}
	if name == "" {
		name = string(container.RestartPolicyUnlessStopped)
	}
	return container.RestartPolicy{Name: container.RestartPolicyMode(name), MaximumRetryCount: most}
}

const (
	nanos  = 1_000_000_000
	shares = 1024 // of a container that may use one core when others want it too
)

// resources are what a container may use. What is reserved of a core becomes its share when cores are short, as Kubernetes
// does it.
func resources(s types.ServiceConfig) container.Resources {
	r := container.Resources{
		CPUShares: s.CPUShares, Memory: int64(s.MemLimit), MemoryReservation: int64(s.MemReservation),
		MemorySwap: int64(s.MemSwapLimit), NanoCPUs: int64(float64(s.CPUS) * nanos), CpusetCpus: s.CPUSet,
		DeviceCgroupRules: s.DeviceCgroupRules,
	}
	if s.PidsLimit != 0 {
		r.PidsLimit = &s.PidsLimit
	}
	requests := s.Gpus
	if s.Deploy != nil {
		if limits := s.Deploy.Resources.Limits; limits != nil {
			if limits.NanoCPUs > 0 {
				r.NanoCPUs = int64(float64(limits.NanoCPUs) * nanos)
			}
			if limits.MemoryBytes > 0 {
				r.Memory = int64(limits.MemoryBytes)
			}
			if limits.Pids != 0 {
				r.PidsLimit = &limits.Pids
			}
		}
		if kept := s.Deploy.Resources.Reservations; kept != nil {
			if kept.NanoCPUs > 0 && r.CPUShares == 0 {
				r.CPUShares = max(2, int64(math.Round(float64(kept.NanoCPUs)*shares)))
			}
			if kept.MemoryBytes > 0 {
				r.MemoryReservation = int64(kept.MemoryBytes)
			}
			requests = append(slices.Clone(requests), kept.Devices...)
		}
	}
	for _, d := range requests {
		count := int(d.Count)
		if count == 0 && len(d.IDs) == 0 {
			count = -1
		}
		r.DeviceRequests = append(r.DeviceRequests, container.DeviceRequest{
			Driver: d.Driver, Count: count, DeviceIDs: d.IDs, Capabilities: [][]string{d.Capabilities}, Options: d.Options,
		})
	}
	for _, d := range s.Devices {
		r.Devices = append(r.Devices, container.DeviceMapping{
			PathOnHost: d.Source, PathInContainer: d.Target, CgroupPermissions: d.Permissions,
		})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Ulimits)) {
		u := s.Ulimits[name]
		soft, hard := u.Soft, u.Hard
		if u.Single != 0 {
			soft, hard = u.Single, u.Single
		}
		r.Ulimits = append(r.Ulimits, &units.Ulimit{Name: name, Soft: int64(soft), Hard: int64(hard)})
	}
	return r
}

func healthcheck(h *types.HealthCheckConfig) *container.HealthConfig {
	if h == nil {
		return nil
	}
	if h.Disable {
		return &container.HealthConfig{Test: []string{"NONE"}}
	}
	check := &container.HealthConfig{Test: h.Test}
	set := func(into *time.Duration, from *types.Duration) {
		if from != nil {
			*into = time.Duration(*from)
		}
	}
	set(&check.Interval, h.Interval)
	set(&check.Timeout, h.Timeout)
	set(&check.StartPeriod, h.StartPeriod)
	set(&check.StartInterval, h.StartInterval)
	if h.Retries != nil {
		check.Retries = int(min(*h.Retries, math.MaxInt32))
	}
	return check
}

// ports fills in which ports a service has, and at which of the machine they are published.
func ports(s types.ServiceConfig, config *container.Config, host *container.HostConfig) error {
	for _, text := range s.Expose {
		port, err := network.ParsePort(text)
		if err != nil {
			return orchestrator.Refuse(orchestrator.ReasonBadManifest, "service %s: expose: %v", s.Name, err)
		}
		config.ExposedPorts[port] = struct{}{}
	}
	for _, p := range s.Ports {
		port, err := network.ParsePort(fmt.Sprintf("%d/%s", p.Target, nonEmpty(p.Protocol, "tcp")))
		if err != nil {
			return orchestrator.Refuse(orchestrator.ReasonBadManifest, "service %s: ports: %v", s.Name, err)
		}
		config.ExposedPorts[port] = struct{}{}
		binding := network.PortBinding{HostPort: p.Published}
		if p.HostIP != "" {
			if binding.HostIP, err = netip.ParseAddr(p.HostIP); err != nil {
				return orchestrator.Refuse(orchestrator.ReasonBadManifest, "service %s: ports: %q is no address", s.Name, p.HostIP)
			}
		}
		if host.PortBindings == nil {
			host.PortBindings = network.PortMap{}
		}
		host.PortBindings[port] = append(host.PortBindings[port], binding)
	}
	return nil
}

// file is a config or a secret in a container.
type file struct {
	Path, Text string
	Mode       int64
	UID, GID   int
}

// filesOf lists the configs and secrets that a service is given.
func filesOf(p *types.Project, s types.ServiceConfig) (all []file, err error) {
	add := func(ref types.FileReferenceConfig, of types.FileObjectConfig, there bool, folder string, mode int64) {
		f := file{Path: nonEmpty(ref.Target, ref.Source), Text: of.Content, Mode: mode}
		if !strings.HasPrefix(f.Path, "/") {
			f.Path = folder + f.Path
		}
		if ref.Mode != nil {
			f.Mode = int64(*ref.Mode)
		}
		f.UID, _ = strconv.Atoi(ref.UID)
		f.GID, _ = strconv.Atoi(ref.GID)
		if !there || bool(of.External) || of.File != "" || of.Environment != "" {
			err = orchestrator.Refuse(orchestrator.ReasonBadManifest, "service %s: %s has no content of its own", s.Name, ref.Source)
		}
		all = append(all, f)
	}
	for _, ref := range s.Configs {
		of, there := p.Configs[ref.Source]
		add(types.FileReferenceConfig(ref), types.FileObjectConfig(of), there, "/", 0o444)
	}
	for _, ref := range s.Secrets {
		of, there := p.Secrets[ref.Source]
		add(types.FileReferenceConfig(ref), types.FileObjectConfig(of), there, "/run/secrets/", 0o444)
	}
	return all, err
}

// admit refuses what cannot run on an engine alone, and what may not run on this one.
func (e *Engine) admit(j *job.Job, p *types.Project) error {
	for _, name := range ordered(p) {
		s := p.Services[name]
		files, err := filesOf(p, s)
		switch {
		case err != nil:
			return err
		case s.Image == "":
			return orchestrator.Refuse(orchestrator.ReasonBadManifest, "component %s: service %s names no image", j.Component, name)
		case s.Provider != nil || len(s.PostStart) > 0 || len(s.PreStop) > 0 || len(s.Models) > 0 || len(s.VolumesFrom) > 0:
			return orchestrator.Refuse(orchestrator.ReasonNotSupported,
				"component %s: service %s has a provider, hooks, models or volumes_from, which are not supported here", j.Component, name)
		case s.ReadOnly && len(files) > 0:
			return orchestrator.Refuse(orchestrator.ReasonNotSupported,
				"component %s: service %s is read_only, so that no config or secret can be put into it", j.Component, name)
		}
	}
	if all := compose.HostAccess(p); len(all) > 0 && !e.hostAccess {
		return orchestrator.Refuse(orchestrator.ReasonDenied,
			"component %s: service %s %s, which this machine does not allow", j.Component, all[0].Keys[1], all[0].What)
	}
	return nil
}
