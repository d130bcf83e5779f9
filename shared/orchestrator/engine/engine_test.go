package engine_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/conformance"
	"github.com/littoral-project/littoral/shared/orchestrator/engine"
	double "github.com/littoral-project/littoral/test/engine"
)

// machine is an engine as a world of the suite.
type machine struct {
	*conformance.Clusters

	client *client.Client
	host   string // network_mode of all services; "" = networks of their own
}

// places are one machine; the suite asks for another, which nothing of it uses here.
var places = []job.Target{
	{Orchestrator: "compose", Cluster: "one", Node: "one-a"},
	{Orchestrator: "compose", Cluster: "one", Node: "one-a"},
	{Orchestrator: "compose", Cluster: "two", Node: "two-a"},
}

// onDouble is the machine of a double.
func onDouble(t *testing.T) (*machine, *double.Server) {
	t.Helper()
	server := double.Start(t)
	c, err := client.New(client.WithHost(server.Host), client.WithDialContext(server.Dial))
	require.NoError(t, err)
	return &machine{
		client: c,
		Clusters: &conformance.Clusters{
			Orchestrator: engine.New(c, engine.Options{Clusters: []string{"one", "two"}}), Targets: places,
			Parted: func(_ *testing.T, _ string, cut bool) {
				server.Cut(cut)
				c.Close()
			},
			Turn: func() {},
		},
	}, server
}

// envEngine names a real engine, such as unix:///run/docker.sock; envNetwork the network_mode that containers of the suite
// have there. "make e2e-docker" sets both.
const (
	envEngine  = "LITTORAL_TEST_ENGINE"
	envNetwork = "LITTORAL_TEST_ENGINE_NETWORK"
)

// onReal is the machine of a real engine.
func onReal(t *testing.T) *machine {
	t.Helper()
	host := os.Getenv(envEngine)
	if host == "" {
		t.Skipf("%s names no real engine; the double was tested, and \"make e2e-docker\" tests real ones", envEngine)
	}
	var cut atomic.Bool
	c, err := client.New(client.WithHost(host), client.WithDialContext(func(ctx context.Context, _, _ string) (net.Conn, error) {
		if cut.Load() {
			return nil, &net.OpError{Op: "dial", Net: "unix", Err: errors.New("cut off")}
		}
		return (&net.Dialer{}).DialContext(ctx, "unix", strings.TrimPrefix(host, "unix://"))
	}))
	require.NoError(t, err)
	network := os.Getenv(envNetwork)
	return &machine{
		client: c, host: network,
		Clusters: &conformance.Clusters{
			Orchestrator: engine.New(c, engine.Options{Clusters: []string{"one", "two"}, HostAccess: network == "host"}), Targets: places,
			Parted: func(_ *testing.T, _ string, off bool) {
				cut.Store(off)
				c.Close()
			},
			Wait: 5 * time.Second,
		},
	}
}

func (m *machine) Do(t *testing.T, j *job.Job) (job.State, []job.Condition) {
	t.Helper()
	return m.Clusters.Do(t, translated(t, j, m.host))
}

// Running reads the containers of the service web.
func (m *machine) Running(t *testing.T, _ string, j *job.Job) *conformance.Running {
	t.Helper()
	listed, err := m.client.ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: client.Filters{}.
		Add("label", orchestrator.LabelJob+"="+orchestrator.Subject(j).String())})
	require.NoError(t, err)
	var r *conformance.Running
	for _, one := range listed.Items {
		if one.Labels["com.docker.compose.service"] != "web" || one.State != container.StateRunning {
			continue
		}
		if r == nil {
			inspected, err := m.client.ContainerInspect(t.Context(), one.ID, client.ContainerInspectOptions{})
			require.NoError(t, err)
			r = &conformance.Running{
				Node:     j.Node,
				CPUMilli: int64(math.Round(float64(inspected.Container.HostConfig.CPUShares) * 1000 / 1024)),
			}
		}
		r.Replicas++
	}
	if r == nil {
		return nil
	}
	s, err := m.Orchestrator.Observe(t.Context(), j)
	require.NoError(t, err)
	r.Epoch = s.Epoch
	return r
}

// translated makes compose files of the objects that the suite deploys. What is never ready there has a check here that
// never succeeds.
func translated(t *testing.T, j *job.Job, network string) *job.Job {
	t.Helper()
	next := *j
	next.Instruction.Type = "docker"
	next.Instruction.Contents = nil
	for _, c := range j.Instruction.Contents {
		var o struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct {
				Replicas int
				Template struct {
					Spec struct{ Containers []struct{ Image string } }
				}
			}
		}
		file := map[string]any{}
		switch err := yaml.Unmarshal([]byte(c.YAML), &o); {
		case err != nil:
			next.Instruction.Contents = append(next.Instruction.Contents, c)
			continue
		case o.Kind == "Deployment":
			image := o.Spec.Template.Spec.Containers[0].Image
			service := map[string]any{"image": image, "deploy": map[string]any{
				"replicas": o.Spec.Replicas, "resources": map[string]any{
					"reservations": map[string]any{"cpus": "0.010", "memory": "16M"},
				},
			}, "stop_grace_period": "1s", "configs": []string{"settings"}}
			if strings.HasPrefix(image, "slow") {
				service["image"], service["healthcheck"] = conformance.Image, map[string]any{"test": []string{"CMD", "/never"}}
			}
			if network != "" {
				service["network_mode"] = network
			}
			file["services"] = map[string]any{o.Metadata.Name: service}
			file["configs"] = map[string]any{"settings": map[string]any{"content": "a: $${b}"}}
		default:
			file["configs"] = map[string]any{o.Metadata.Name: map[string]any{"content": "a: $${b}"}}
		}
		text, err := yaml.Marshal(file)
		require.NoError(t, err)
		next.Instruction.Contents = append(next.Instruction.Contents, job.Content{Name: c.Name, YAML: string(text)})
	}
	return &next
}

var can = conformance.Can{Silence: true, Refuse: true, Slow: true, Rollout: true}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Run(t, can, func(t *testing.T) conformance.World { t.Helper(); m, _ := onDouble(t); return m })
}

func TestConformance_real(t *testing.T) {
	conformance.Run(t, can, func(t *testing.T) conformance.World { t.Helper(); return onReal(t) })
}

// run is a job of one service with these lines.
func run(lines string) *job.Job {
	j := conformance.Job(places[0], 1)
	j.Instruction = job.Instruction{ComponentName: "web", Type: "docker", Contents: []job.Content{
		{Name: "web", YAML: "services:\n  web:\n    image: web:1\n" + indented(lines)},
	}}
	return j
}

func indented(lines string) string {
	all := ""
	for _, line := range strings.Split(lines, "\n") {
		if top, ok := strings.CutPrefix(line, "^"); ok {
			all += top + "\n"
		} else if line != "" {
			all += "    " + line + "\n"
		}
	}
	return all
}

// do carries the job out as it is.
func (m *machine) do(t *testing.T, j *job.Job) (job.State, []job.Condition) {
	t.Helper()
	return m.Clusters.Do(t, j)
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	for lines, row := range map[string][2]string{
		"privileged: true":                              {orchestrator.ReasonDenied, "rights beyond those of a container"},
		"volumes: [/etc:/etc]":                          {orchestrator.ReasonDenied, "mounts /etc of the host"},
		"network_mode: host":                            {orchestrator.ReasonDenied, "shares the host's own"},
		"network_mode: container:other":                 {orchestrator.ReasonDenied, "joins another container"},
		"volumes_from: [web]":                           {orchestrator.ReasonNotSupported, "volumes_from"},
		"image: unpullable:1":                           {"ImagePullFailed", "not found"},
		"pull_policy: never":                            {"ImagePullFailed", "is not on this machine"},
		"configs: [a]\n^configs: {a: {external: true}}": {orchestrator.ReasonBadManifest, "a has no content"},
		"read_only: true\nconfigs: [a]\n^configs: {a: {content: text}}": {orchestrator.ReasonNotSupported, "read_only"},
	} {
		t.Run(lines, func(t *testing.T) {
			t.Parallel()
			m, server := onDouble(t)
			j := run(lines)
			if strings.HasPrefix(lines, "image:") {
				j.Instruction.Contents[0].YAML = strings.Replace(j.Instruction.Contents[0].YAML, "    image: web:1\n", "", 1)
			}
			state, conditions := m.do(t, j)
			require.Equal(t, job.Degraded, state, "%v", conditions)
			j.Conditions = conditions
			c := j.Condition(job.ConditionDegraded)
			require.Equal(t, row[0], c.Reason, c.Message)
			require.Contains(t, c.Message, row[1])
			require.Empty(t, server.Containers())
			state, conditions = m.do(t, conformance.As(j, job.Delete))
			require.Equal(t, job.Finished, state, "%v", conditions)
			networks, volumes := server.Names()
			require.Empty(t, networks)
			require.Empty(t, volumes)
		})
	}
}

// TestWhatSomebodyDidIsUndone: to containers and to records, by hand or by a reboot.
func TestWhatSomebodyDidIsUndone(t *testing.T) {
	t.Parallel()
	for name, did := range map[string]func(server *double.Server, name string){
		"stopped": func(s *double.Server, name string) {
			s.Change(name, func(c *double.Container) bool { c.State, c.ExitCode = "exited", 137; return true })
		},
		"removed":  func(s *double.Server, name string) { s.Change(name, func(*double.Container) bool { return false }) },
		"pruned":   func(s *double.Server, _ string) { s.Prune() },
		"rebooted": func(s *double.Server, _ string) { s.Reboot() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, server := onDouble(t)
			j := run("restart: always")
			m.do(t, j)
			did(server, server.Containers()[0].Name)
			s, err := m.Orchestrator.Observe(t.Context(), j)
			require.NoError(t, err)
			require.True(t, s.Outdated(j))
			copies, _, err := m.Orchestrator.Copies(t.Context())
			require.NoError(t, err)
			require.Len(t, copies, 1)
			require.Equal(t, []any{j.ID, j.Namespace, "one"}, []any{copies[0].Subject, copies[0].Namespace, copies[0].Cluster})
			state, conditions := m.do(t, j)
			require.Equal(t, job.Finished, state, "%v", conditions)
			require.Equal(t, "running", server.Containers()[0].State)
		})
	}
}

// TestWithoutAController keeps what there is running.
func TestWithoutAController(t *testing.T) {
	t.Parallel()
	m, server := onDouble(t)
	j, other := run("restart: always"), run("restart: always")
	m.do(t, j)
	m.do(t, other)
	server.Reboot()
	keeper, ok := m.Orchestrator.(*engine.Engine)
	require.True(t, ok)
	require.NoError(t, keeper.Keep(t.Context()))
	for _, c := range server.Containers() {
		require.Equal(t, "running", c.State)
	}
}

func TestHowContainersEnd(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		lines string
		end   func(*double.Container) bool
		state job.State
		says  string
	}{
		"done": {`restart: "no"`, func(c *double.Container) bool { c.State = "exited"; return true }, job.Finished, "1 of 1"},
		"failed, and to stay so": {
			"restart: on-failure:3", func(c *double.Container) bool { c.State, c.ExitCode, c.Restarts = "exited", 3, 1; return true },
			job.Finished, "1 of 1", // it is started once more
		},
		"failing again and again": {"", func(c *double.Container) bool { c.Restarts = 7; return true }, job.Finished, "1 of 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, server := onDouble(t)
			j := run(row.lines)
			m.do(t, j)
			server.Change(server.Containers()[0].Name, row.end)
			state, conditions := m.do(t, j)
			require.Equal(t, row.state, state, "%v", conditions)
			require.Contains(t, fmt.Sprint(conditions), row.says)
		})
	}
}

func TestReplicasThatAreToComeAndGo(t *testing.T) {
	t.Parallel()
	m, server := onDouble(t)
	j := run("deploy: {replicas: 3}")
	m.do(t, j)
	names := func() (all []string) {
		for _, c := range server.Containers() {
			all = append(all, c.Name[strings.LastIndexByte(c.Name, '-')+1:]+" "+strconv.Itoa(len(c.ID)))
		}
		return all
	}
	require.Len(t, names(), 3)
	before := server.Containers()
	down := conformance.Ask(j, job.ScaleDown)
	m.do(t, down)
	after := server.Containers()
	require.Len(t, after, 2)
	require.True(t, slices.EqualFunc(before[:2], after, func(a, b double.Container) bool { return a.ID == b.ID }), "they stay")
}

// TestServicesInSeveralNetworks: each network of a service, with the names and addresses that the file gives it there.
func TestServicesInSeveralNetworks(t *testing.T) {
	t.Parallel()
	m, server := onDouble(t)
	j := run("networks: {front: {aliases: [shop], ipv4_address: 10.1.0.5}, back: {}}\n" +
		"^networks: {front: {ipam: {config: [{subnet: 10.1.0.0/16}]}}, back: {internal: true}}")
	state, conditions := m.do(t, j)
	require.Equal(t, job.Finished, state, "%v", conditions)
	c := server.Containers()[0]
	project := c.Labels["com.docker.compose.project"]
	require.Len(t, c.Networks, 2)
	require.Equal(t, []string{"web", "shop"}, c.Networks[project+"_front"].Aliases)
	require.Equal(t, "10.1.0.5", c.Networks[project+"_front"].IPAMConfig.IPv4Address.String())
	require.Equal(t, []string{"web"}, c.Networks[project+"_back"].Aliases)

	for lines, says := range map[string]string{
		"networks: {front: {ipv4_address: here}}\n^networks: {front: {}}":                 "service web: networks: front",
		"networks: [front]\n^networks: {front: {ipam: {config: [{subnet: everything}]}}}": "network front: ipam",
	} {
		state, conditions := m.do(t, run(lines))
		require.Equal(t, job.Degraded, state)
		require.Contains(t, fmt.Sprint(conditions), says)
	}
}

// TestRegistriesWithPasswords: images come from a registry that asks who one is, by the file of "docker login", which may be
// renewed at any time.
func TestRegistriesWithPasswords(t *testing.T) {
	t.Parallel()
	m, server := onDouble(t)
	file := filepath.Join(t.TempDir(), "config.json")
	m.Orchestrator = engine.New(m.client, engine.Options{Clusters: []string{"one"}, AuthFile: file})
	j := withImage(run(""), double.Private+"web:1")
	refused := func(says string) {
		state, conditions := m.do(t, j)
		require.Equal(t, job.Degraded, state, "%v", conditions)
		seen := job.Job{Conditions: conditions}
		require.Equal(t, "ImagePullFailed", seen.Condition(job.ConditionDegraded).Reason)
		require.Contains(t, seen.Condition(job.ConditionDegraded).Message, says)
		require.NotContains(t, fmt.Sprint(conditions), double.Password)
		require.Empty(t, server.Containers())
	}
	write := func(registry, auth string) {
		require.NoError(t, os.WriteFile(file, []byte(`{"auths": {"`+registry+`": {"auth": "`+auth+`"}}}`), 0o600))
	}
	signed := base64.StdEncoding.EncodeToString([]byte(double.User + ":" + double.Password))
	refused("unauthorized")
	write("registry.example.com", signed)
	refused("unauthorized")
	write("registry.example.org", base64.StdEncoding.EncodeToString([]byte(double.User+":wrong")))
	refused("unauthorized")
	write("registry.example.org", "no base64")
	refused("is no name and password")
	write("registry.example.org", signed)
	state, conditions := m.do(t, j)
	require.Equal(t, job.Finished, state, "%v", conditions)
	require.Equal(t, double.Private+"web:1", server.Containers()[0].Image)
	for _, c := range server.Containers() {
		require.NotContains(t, fmt.Sprint(c.Labels, c.Env), signed)
	}
}
