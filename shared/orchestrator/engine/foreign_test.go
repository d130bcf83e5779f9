package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/conformance"
)

// envCompose names the command line of Compose.
const envCompose = "LITTORAL_TEST_COMPOSE"

// several is a file with what most files have. Each service says when it is started again, which Compose and we see differently
// if it does not.
const several = `services:
  web:
    image: hello:1
    command: [serve]
    environment: {COLOUR: red}
    labels: {tier: front}
    restart: always
    stop_grace_period: 1s
    depends_on: [store]
    deploy: {replicas: 2, resources: {limits: {memory: 64M}}}
    networks: {front: {aliases: [shop]}, back: {}}
    configs: [settings]
  store:
    image: hello:2
    restart: unless-stopped
    stop_grace_period: 1s
    networks: [back]
    volumes: [data:/data, "kept:/kept:ro"]
networks: {front: {}, back: {internal: true}}
volumes: {data: {labels: {of: shop}}, kept: {}}
configs: {settings: {content: "a: b"}}
`

// foreign is the command line of Compose at the engine.
func (m *machine) foreign(t *testing.T, args ...string) string {
	t.Helper()
	c := exec.CommandContext(context.WithoutCancel(t.Context()), os.Getenv(envCompose), args...) //nolint:gosec // it is what it is for
	c.Env = append(os.Environ(), "DOCKER_HOST="+m.client.DaemonHost(), "DOCKER_CONFIG="+t.TempDir())
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	require.NoError(t, err, "%v: %s", args, said.String())
	return string(out)
}

// TestTheCommandLineOfComposeKnowsWhatRuns: people who know Compose see what was deployed, and of the same file it makes what we
// make. What they stop or take down by hand is put back.
func TestTheCommandLineOfComposeKnowsWhatRuns_real(t *testing.T) {
	if os.Getenv(envCompose) == "" {
		t.Skipf("%s names no command line of Compose; \"make e2e-docker\" builds one", envCompose)
	}
	m := onReal(t)
	j := run("")
	j.Instruction.Contents[0].YAML = several
	t.Cleanup(func() {
		require.NoError(t, m.Orchestrator.Remove(context.WithoutCancel(t.Context()), conformance.As(j, job.Delete)))
	})
	deploy := func(why string) {
		t.Helper()
		state, conditions := m.do(t, j)
		require.Equal(t, job.Finished, state, "%s: %v", why, conditions)
	}
	deploy("at first")
	project := orchestrator.NameOf(j)

	require.Contains(t, m.foreign(t, "ls", "--format=json"), `"Name":"`+project+`","Status":"running(3)"`)
	require.Equal(t, []string{project + "-store-1 store running", project + "-web-1 web running", project + "-web-2 web running"}, m.ps(t, project))
	require.Contains(t, m.foreign(t, "-p", project, "logs", "--no-color", "web"), "hello [serve]")
	require.Contains(t, m.foreign(t, "-p", project, "images", "--format=json"), project+"-store-1")

	const theirs = "by-hand"
	file := filepath.Join(t.TempDir(), "compose.yaml")
	require.NoError(t, os.WriteFile(file, []byte(several), 0o600))
	t.Cleanup(func() { m.foreign(t, "-p", theirs, "-f", file, "down", "--volumes", "--timeout=1") })
	m.foreign(t, "-p", theirs, "-f", file, "up", "--detach")
	require.Equal(t, m.shape(t, theirs), m.shape(t, project))

	for _, did := range [][]string{{"stop", "--timeout=1"}, {"rm", "--stop", "--force", "web"}, {"down", "--timeout=1"}} {
		m.foreign(t, slices.Concat([]string{"-p", project}, did)...)
		s, err := m.Orchestrator.Observe(t.Context(), j)
		require.NoError(t, err)
		require.True(t, s.Outdated(j), "%v", did)
		deploy("after " + did[0])
		require.Equal(t, m.shape(t, theirs), m.shape(t, project), "%v", did)
	}
}

// ps is what "docker compose ps" says of a project.
func (m *machine) ps(t *testing.T, project string) (all []string) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(m.foreign(t, "-p", project, "ps", "--all", "--format=json")), "\n") {
		var one struct{ Name, Service, State string }
		require.NoError(t, json.Unmarshal([]byte(line), &one), line)
		all = append(all, one.Name+" "+one.Service+" "+one.State)
	}
	slices.Sort(all)
	return all
}

// made is a part of a project, without what tells it from the same part of another.
type made struct {
	Name     string
	Labels   map[string]string
	Image    string
	Command  []string
	Env      []string
	Restart  container.RestartPolicyMode
	Memory   int64
	Networks map[string][]string // with the names there
	Mounts   map[string]string
	Internal bool
}

// shape is what there is of a project.
func (m *machine) shape(t *testing.T, project string) (all []made) {
	t.Helper()
	ctx, filter := t.Context(), client.Filters{}.Add("label", "com.docker.compose.project="+project)
	plain := func(name string) string { return strings.TrimPrefix(strings.ReplaceAll(name, project, "PROJECT"), "/") }
	labels := func(all map[string]string) map[string]string {
		kept := map[string]string{}
		for name, value := range all {
			switch key, compose := strings.CutPrefix(name, "com.docker.compose."); {
			case compose && slices.Contains([]string{"project", "service", "container-number", "oneoff", "network", "volume"}, key),
				name == "tier", name == "of":
				kept[name] = plain(value)
			case name == "com.docker.compose.config-hash":
				kept[name] = "" // each has its own
			}
		}
		return kept
	}
	containers, err := m.client.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filter})
	require.NoError(t, err)
	for _, listed := range containers.Items {
		inspected, err := m.client.ContainerInspect(ctx, listed.ID, client.ContainerInspectOptions{})
		require.NoError(t, err)
		c := inspected.Container
		one := made{
			Name: plain(c.Name), Labels: labels(c.Config.Labels), Image: c.Config.Image, Command: c.Config.Cmd, Restart: c.HostConfig.RestartPolicy.Name,
			Memory: c.HostConfig.Memory, Networks: map[string][]string{}, Mounts: map[string]string{},
			Env: slices.DeleteFunc(c.Config.Env, func(s string) bool { return !strings.HasPrefix(s, "COLOUR=") }),
		}
		for name, in := range c.NetworkSettings.Networks {
			one.Networks[plain(name)] = slices.DeleteFunc(in.Aliases, func(s string) bool { return s != "web" && s != "store" && s != "shop" })
			slices.Sort(one.Networks[plain(name)])
		}
		for _, mount := range c.Mounts {
			one.Mounts[mount.Destination] = plain(mount.Name)
			if !mount.RW {
				one.Mounts[mount.Destination] += ":ro"
			}
		}
		all = append(all, one)
	}
	networks, err := m.client.NetworkList(ctx, client.NetworkListOptions{Filters: filter})
	require.NoError(t, err)
	for _, n := range networks.Items {
		of := labels(n.Labels)
		delete(of, "com.docker.compose.config-hash")
		all = append(all, made{Name: plain(n.Name), Labels: of, Internal: n.Internal})
	}
	volumes, err := m.client.VolumeList(ctx, client.VolumeListOptions{Filters: filter})
	require.NoError(t, err)
	for _, v := range volumes.Items {
		of := labels(v.Labels)
		delete(of, "com.docker.compose.config-hash")
		all = append(all, made{Name: plain(v.Name), Labels: of})
	}
	slices.SortFunc(all, func(a, b made) int { return strings.Compare(a.Name, b.Name) })
	return all
}
