package engine

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/composefile"
)

// Labels by which the command line of Compose knows what belongs to a project. It shows no container without all of them.
const (
	composeProject = "com.docker.compose.project"
	composeService = "com.docker.compose.service"
	composeNumber  = "com.docker.compose.container-number"
	composeOneOff  = "com.docker.compose.oneoff" // made by "docker compose run"
	composeHash    = "com.docker.compose.config-hash"
	composeNetwork = "com.docker.compose.network"
	composeVolume  = "com.docker.compose.volume"
	labelDigest    = "littoral.dev/service" // what the service was when the container was made
)

// instance is one container that a copy is to have.
type instance struct {
	name    string
	service string
	number  int
	digest  string
}

// plan lists the containers that the project is to have, each after those that it depends on.
func plan(c *copied, p *types.Project) (all []instance) {
	for _, service := range ordered(p) {
		s := p.Services[service]
		digest := digestOf(p, s)
		for i := range s.GetScale() {
			all = append(all, instance{
				name: c.project() + "-" + service + "-" + strconv.Itoa(i+1), service: service, number: i + 1, digest: digest,
			})
		}
	}
	return all
}

// ordered names the services, each after those that it depends on. The library has refused circles.
func ordered(p *types.Project) (names []string) {
	var visit func(name string)
	visit = func(name string) {
		if slices.Contains(names, name) {
			return
		}
		s, there := p.Services[name]
		if !there {
			return
		}
		for _, before := range slices.Sorted(maps.Keys(s.DependsOn)) {
			visit(before)
		}
		if other, ok := strings.CutPrefix(s.NetworkMode, types.ServicePrefix); ok {
			visit(other)
		}
		names = append(names, name)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Services)) {
		visit(name)
	}
	return names
}

// digestOf tells whether a service has changed in more than how often it runs.
func digestOf(p *types.Project, s types.ServiceConfig) string {
	s.Scale = nil
	if s.Deploy != nil {
		deploy := *s.Deploy
		deploy.Replicas = nil
		s.Deploy = &deploy
	}
	files, _ := filesOf(p, s)
	text, err := json.Marshal([]any{s, files})
	if err != nil {
		return "" // it was read from text: it does not happen
	}
	return orchestrator.Digest(text)
}

// converge makes the containers what the record says. Every step may be repeated.
func (e *Engine) converge(ctx context.Context, j *job.Job, c *copied) error {
	loaded, err := c.load(ctx)
	if err != nil {
		return composefile.Bad(j, err)
	}
	p := loaded.Of()
	if err := e.images(ctx, j, p); err != nil {
		return err
	}
	if err := e.networks(ctx, c, p); err != nil {
		return err
	}
	for name, v := range p.Volumes {
		if v.External {
			continue
		}
		labels := c.of(v.Labels)
		labels[composeProject], labels[composeVolume] = c.project(), name
		if _, err := e.client.VolumeCreate(ctx, client.VolumeCreateOptions{
			Name: volumeName(c, p, name), Driver: v.Driver, DriverOpts: v.DriverOpts, Labels: labels,
		}); err != nil {
			return err
		}
	}
	have := map[string]*container.Summary{}
	for i := range c.containers {
		have[nameOf(&c.containers[i])] = &c.containers[i]
	}
	wanted := plan(c, p)
	for _, one := range c.containers {
		if !slices.ContainsFunc(wanted, func(w instance) bool { return w.name == nameOf(&one) }) {
			if err := e.end(ctx, one.ID); err != nil {
				return err
			}
		}
	}
	for _, w := range wanted {
		if err := e.keep(ctx, c, p, w, have[w.name]); err != nil {
			return err
		}
	}
	return nil
}

// keep makes one container what it should be.
func (e *Engine) keep(ctx context.Context, c *copied, p *types.Project, w instance, have *container.Summary) error {
	s := p.Services[w.service]
	if have != nil && have.Labels[labelDigest] != w.digest {
		if err := e.end(ctx, have.ID); err != nil {
			return err
		}
		have = nil
	}
	var id string
	switch {
	case have == nil:
		options, err := optionsOf(c, p, s, w)
		if err != nil {
			return err
		}
		made, err := e.client.ContainerCreate(ctx, options)
		if err != nil {
			return err
		}
		id = made.ID
	case have.State == container.StateCreated: // its networks and files may be missing, if we were killed
		id = have.ID
	case have.State == container.StateExited, have.State == container.StateDead, string(have.State) == stateStopped:
		if done, err := e.done(ctx, have.ID); err != nil || done {
			return err
		}
		_, err := e.client.ContainerStart(ctx, have.ID, client.ContainerStartOptions{})
		return err
	default:
		return nil
	}
	if err := e.join(ctx, id, c, p, s, w); err != nil {
		return err
	}
	if err := e.bring(ctx, id, p, s); err != nil {
		return err
	}
	_, err := e.client.ContainerStart(ctx, id, client.ContainerStartOptions{})
	return err
}

// join puts a container that was not started yet into the networks after the first. Older engines make it in one only.
func (e *Engine) join(ctx context.Context, id string, c *copied, p *types.Project, s types.ServiceConfig, w instance) error {
	in := networksOf(s)
	if len(in) < 2 {
		return nil
	}
	made, err := e.client.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return err
	}
	for _, name := range in[1:] {
		full := networkName(c, p, name)
		if made.Container.NetworkSettings != nil && made.Container.NetworkSettings.Networks[full] != nil {
			continue
		}
		settings, err := endpoint(s, name, w)
		if err != nil {
			return err
		}
		_, err = e.client.NetworkConnect(ctx, full, client.NetworkConnectOptions{Container: id, EndpointConfig: settings})
		if errdefs.IsPermissionDenied(err) { // so it is refused, too, where another process has just done it
			again, failed := e.client.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
			if failed != nil {
				return failed
			}
			if again.Container.NetworkSettings != nil && again.Container.NetworkSettings.Networks[full] != nil {
				continue
			}
		}
		if err != nil {
			return fmt.Errorf("network %s: %w", name, err)
		}
	}
	return nil
}

// stateStopped is what Podman calls a container that has been stopped and not yet cleaned up.
const stateStopped = "stopped"

// done reports whether a container has ended as it should.
func (e *Engine) done(ctx context.Context, id string) (bool, error) {
	one, err := e.client.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return false, err
	}
	return ended(&one.Container), nil
}

// ended reports whether a container has done its work: it ended without an error, and is not to be started again.
func ended(c *container.InspectResponse) bool {
	once := c.HostConfig.RestartPolicy.Name == container.RestartPolicyDisabled ||
		c.HostConfig.RestartPolicy.Name == container.RestartPolicyOnFailure || c.HostConfig.RestartPolicy.Name == ""
	return once && c.State.ExitCode == 0 && !c.State.Running && c.State.Error == "" && c.State.StartedAt > "0001-01-02"
}

// end stops a container in its own time and removes it, with its anonymous volumes.
func (e *Engine) end(ctx context.Context, id string) error {
	if _, err := e.client.ContainerStop(ctx, id, client.ContainerStopOptions{}); errdefs.IsNotFound(err) {
		return nil
	} else if err != nil && ctx.Err() != nil {
		return err
	} // removing it by force says whether it can be ended at all
	_, err := e.client.ContainerRemove(ctx, id, client.ContainerRemoveOptions{RemoveVolumes: true, Force: true})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// images fetches the images that the engine lacks, or that are to be fetched each time.
func (e *Engine) images(ctx context.Context, j *job.Job, p *types.Project) error {
	fetched := map[string]bool{}
	for _, name := range ordered(p) {
		s := p.Services[name]
		if fetched[s.Image] {
			continue
		}
		fetched[s.Image] = true
		_, err := e.client.ImageInspect(ctx, s.Image)
		switch {
		case err == nil: // "always" concerns new content only, which names another image or digest
			continue
		case !errdefs.IsNotFound(err):
			return err
		case s.PullPolicy == types.PullPolicyNever:
			return orchestrator.Refuse(reasonImage, "component %s: image %s is not on this machine, and pull_policy is never",
				j.Component, s.Image)
		}
		auth, err := credentials(e.authFile, s.Image)
		if err != nil {
			return orchestrator.Refuse(reasonImage, "component %s: %v", j.Component, err)
		}
		pulled, err := e.client.ImagePull(ctx, s.Image, client.ImagePullOptions{RegistryAuth: auth})
		if err == nil {
			err = pulled.Wait(ctx)
			_ = pulled.Close()
		}
		if err != nil && !client.IsErrConnectionFailed(err) && ctx.Err() == nil {
			return orchestrator.Refuse(reasonImage, "component %s: image %s: %v", j.Component, s.Image, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// networks makes those of the project that are missing.
func (e *Engine) networks(ctx context.Context, c *copied, p *types.Project) error {
	for name := range used(p) {
		n := p.Networks[name]
		if n.External {
			continue
		}
		full := networkName(c, p, name)
		_, err := e.client.NetworkInspect(ctx, full, client.NetworkInspectOptions{})
		if err == nil {
			continue
		} else if !errdefs.IsNotFound(err) {
			return err
		}
		labels := c.of(n.Labels)
		labels[composeProject], labels[composeNetwork] = c.project(), name
		pools, err := ipam(n)
		if err != nil {
			return orchestrator.Refuse(orchestrator.ReasonBadManifest, "network %s: ipam: %v", name, err)
		}
		driver := n.Driver
		if driver == "" {
			driver = "bridge"
		}
		if _, err := e.client.NetworkCreate(ctx, full, client.NetworkCreateOptions{
			Driver: driver, Options: n.DriverOpts, Internal: n.Internal, Attachable: n.Attachable, EnableIPv6: n.EnableIPv6,
			IPAM: pools, Labels: labels,
		}); err != nil && !errdefs.IsConflict(err) {
			return fmt.Errorf("network %s: %w", name, err)
		}
	}
	return nil
}

// bring puts configs and secrets into a container that was not started yet.
func (e *Engine) bring(ctx context.Context, id string, p *types.Project, s types.ServiceConfig) error {
	files, err := filesOf(p, s)
	if err != nil || len(files) == 0 {
		return err
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, f := range files {
		header := &tar.Header{Name: strings.TrimPrefix(f.Path, "/"), Mode: f.Mode, Size: int64(len(f.Text)), Uid: f.UID, Gid: f.GID}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write([]byte(f.Text)); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	_, err = e.client.CopyToContainer(ctx, id, client.CopyToContainerOptions{DestinationPath: "/", Content: &archive})
	return err
}
