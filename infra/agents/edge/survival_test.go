package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/test/engine"
	"github.com/littoral-project/littoral/test/inprocess"
)

// envAgent is set in a process of this test that is an agent, so that it can be killed as one.
const envAgent = "LITTORAL_TEST_EDGE_AGENT"

// What names a real engine, see scripts/with-engine.
const (
	envEngine  = "LITTORAL_TEST_ENGINE"
	envProcess = "LITTORAL_TEST_ENGINE_PROCESS" // a file with the id of its process
)

// patience is how long something may take on a busy machine, or on a real engine.
const patience = 2 * time.Minute

// pause is how long it waits before it looks again: short, so that a kill comes in the middle of something.
const pause = 5 * time.Millisecond

// machine is a controller, an engine, and an agent in a process of its own between them.
type machine struct {
	*site

	client *client.Client
	double *engine.Server // nil on a real engine
	images []string       // two that the engine can run
	away   atomic.Bool    // the controller cannot be reached

	controller, token string
	more              []string // of the agent's settings
	mu                sync.Mutex
	process           *exec.Cmd
	ended             chan struct{}
}

// onDouble is a machine with the double of an engine.
func onDouble(t *testing.T) *machine {
	t.Helper()
	server := engine.Start(t)
	return join(t, &machine{double: server, images: []string{"web:1", "web:2"}}, server.Host)
}

// onReal is a machine with a real engine.
func onReal(t *testing.T) *machine {
	t.Helper()
	host := os.Getenv(envEngine)
	if host == "" {
		t.Skipf("%s names no real engine; the double was tested, and \"make e2e-docker\" tests real ones", envEngine)
	}
	return join(t, &machine{images: []string{"hello:1", "hello:2"}}, host)
}

// join gives the machine a controller that allows what a machine may refuse itself.
func join(t *testing.T, m *machine, host string) *machine {
	t.Helper()
	c, err := client.New(client.WithHost(host))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	m.client = c
	m.site = &site{
		System: inprocess.StartWith(t, settings.Map(map[string]string{"COMPOSE_HOST_ACCESS": "operator"})), t: t,
		engine: engine.Start(t), // of the other machine
	}
	m.SaveTopology(m.machines())
	to, err := url.Parse(m.URL)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.away.Load() {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	m.controller = front.URL
	m.token = t.TempDir() + "/token"
	require.NoError(t, os.WriteFile(m.token, []byte(m.Issuer.AgentToken(t, "agent-harbour")), 0o600))
	t.Cleanup(func() {
		m.kill()
		m.clear()
	})
	m.clear()
	return m
}

// start starts the agent's process.
func (m *machine) start() {
	m.t.Helper()
	command := exec.CommandContext(context.WithoutCancel(m.t.Context()), os.Args[0], "-test.run=^$")
	command.Env = append(os.Environ(), envAgent+"=1", "EDGE_CONTROLLER="+m.controller, "EDGE_TOKEN_FILE="+m.token,
		"EDGE_AGENT_ID=agent-harbour", "EDGE_CLUSTER=harbour", "EDGE_ENGINE="+m.client.DaemonHost(), "EDGE_BIND=off",
		"EDGE_POLL=100ms", "EDGE_SYNC=500ms", "EDGE_WAIT=1s")
	command.Env = append(command.Env, m.more...)
	log := &strings.Builder{}
	command.Stderr = log
	require.NoError(m.t, command.Start())
	ended := make(chan struct{})
	go func() {
		_ = command.Wait()
		if m.t.Failed() {
			fmt.Fprintln(os.Stderr, log.String())
		}
		close(ended)
	}()
	m.mu.Lock()
	m.process, m.ended = command, ended
	m.mu.Unlock()
}

// kill ends the agent as kill -9 does.
func (m *machine) kill() {
	m.mu.Lock()
	process, ended := m.process, m.ended
	m.process = nil
	m.mu.Unlock()
	if process != nil {
		_ = process.Process.Kill()
		<-ended
	}
}

// strike kills the agent from within a call of its own, and does not wait for its end.
func (m *machine) strike() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process != nil {
		_ = m.process.Process.Kill()
	}
}

func ours() client.Filters {
	return client.Filters{}.Add("label", orchestrator.LabelManager+"="+orchestrator.Manager)
}

// containers lists those that there are of applications, as "state image".
func (m *machine) containers() (all []string) {
	listed, err := m.client.ContainerList(context.WithoutCancel(m.t.Context()), client.ContainerListOptions{All: true, Filters: ours()})
	if err != nil {
		return []string{err.Error()}
	}
	for _, one := range listed.Items {
		image := one.Image[strings.LastIndexByte(one.Image, '/')+1:]
		all = append(all, string(one.State)+" "+image)
	}
	slices.Sort(all)
	return all
}

// left lists the volumes and networks of applications.
func (m *machine) left() (all []string) {
	ctx := context.WithoutCancel(m.t.Context())
	volumes, err := m.client.VolumeList(ctx, client.VolumeListOptions{Filters: ours()})
	require.NoError(m.t, err)
	for _, v := range volumes.Items {
		all = append(all, "volume "+v.Name)
	}
	networks, err := m.client.NetworkList(ctx, client.NetworkListOptions{Filters: ours()})
	require.NoError(m.t, err)
	for _, n := range networks.Items {
		all = append(all, "network "+n.Name)
	}
	return all
}

// clear removes what a test before this one has left.
func (m *machine) clear() {
	ctx := context.WithoutCancel(m.t.Context())
	containers, err := m.client.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: ours()})
	if err != nil {
		return
	}
	for _, one := range containers.Items {
		_, _ = m.client.ContainerRemove(ctx, one.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	}
	networks, _ := m.client.NetworkList(ctx, client.NetworkListOptions{Filters: ours()})
	for _, n := range networks.Items {
		_, _ = m.client.NetworkRemove(ctx, n.ID, client.NetworkRemoveOptions{})
	}
	volumes, _ := m.client.VolumeList(ctx, client.VolumeListOptions{Filters: ours()})
	for _, v := range volumes.Items {
		_, _ = m.client.VolumeRemove(ctx, v.Name, client.VolumeRemoveOptions{})
	}
}

// run waits until n containers of the image run, and no others are there.
func (m *machine) run(image string, n int, message string) {
	m.t.Helper()
	want := slices.Repeat([]string{"running " + image}, n)
	m.await(func() bool { return slices.Equal(m.containers(), want) }, func() string {
		return fmt.Sprintf("%s: there are %v instead of %v", message, m.containers(), want)
	})
}

// await looks again and again until it is so. Its condition may end the test, which one of require.Eventually may not.
func (m *machine) await(so func() bool, otherwise func() string) {
	m.t.Helper()
	for until := time.Now().Add(patience); !so(); time.Sleep(pause) {
		if time.Now().After(until) {
			require.Fail(m.t, "waited in vain", otherwise())
		}
	}
}

// reported waits until the controller knows that the application is available at the cluster.
func (m *machine) reported(cluster, message string) {
	m.t.Helper()
	m.await(func() bool {
		j, conditions := m.only()
		seen := job.Job{Conditions: conditions}
		c := seen.Condition(job.ConditionAvailable)
		return j.State == "Finished" && j.Targets.Cluster == cluster && c != nil && c.Status == "True"
	}, func() string {
		j, conditions := m.only()
		return fmt.Sprintf("%s: %s at %s: %v", message, j.State, j.Targets.Cluster, conditions)
	})
}

// gone waits until nothing is left of applications.
func (m *machine) gone(message string) {
	m.t.Helper()
	m.await(func() bool { return len(m.containers()) == 0 && len(m.left()) == 0 }, func() string {
		return fmt.Sprintf("%s: %v %v", message, m.containers(), m.left())
	})
}

// records demands that each application has one record.
func (m *machine) records() {
	m.t.Helper()
	records := slices.DeleteFunc(m.left(), func(s string) bool { return !strings.Contains(s, "-record-") })
	require.Len(m.t, records, 1)
}

// replaced is the application with another image.
func replaced(image string) string { return strings.ReplaceAll(descriptor, "IMAGE", image) }

// delete deletes the application.
func (m *machine) delete(id string) {
	m.t.Helper()
	m.call(http.MethodDelete, "/jobmanager/groups/"+id+"?stop=true", "", http.StatusAccepted)
}

// processes are the ids of the processes of all containers of applications.
func (m *machine) processes() (all []int) {
	m.t.Helper()
	listed, err := m.client.ContainerList(m.t.Context(), client.ContainerListOptions{Filters: ours()})
	require.NoError(m.t, err)
	for _, one := range listed.Items {
		inspected, err := m.client.ContainerInspect(m.t.Context(), one.ID, client.ContainerInspectOptions{})
		require.NoError(m.t, err)
		all = append(all, inspected.Container.State.Pid)
	}
	return all
}

// reboot ends the agent, the engine and all containers at once, and starts the engine again.
func (m *machine) reboot() {
	m.t.Helper()
	m.kill()
	if m.double != nil {
		m.double.Reboot()
		return
	}
	processes := m.processes()
	m.killEngine()
	for _, id := range processes {
		_ = syscall.Kill(id, syscall.SIGKILL)
	}
	m.awaitEngine()
}

// killEngine kills a real engine; whoever started it starts it again.
func (m *machine) killEngine() {
	m.t.Helper()
	file := os.Getenv(envProcess)
	if file == "" {
		m.t.Skipf("%s names no process of the engine that may be killed", envProcess)
	}
	text, err := os.ReadFile(file)
	require.NoError(m.t, err)
	id, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(m.t, err)
	require.NoError(m.t, syscall.Kill(id, syscall.SIGKILL))
}

// awaitEngine waits until the engine answers.
func (m *machine) awaitEngine() {
	m.t.Helper()
	var err error
	m.await(func() bool {
		_, err = m.client.ContainerList(m.t.Context(), client.ContainerListOptions{})
		return err == nil
	}, func() string { return fmt.Sprintf("the engine does not answer again: %v", err) })
}

// doubled runs the test on the double; its sibling NAME_real runs it on a real engine.
func doubled(t *testing.T, test func(t *testing.T, m *machine)) {
	t.Helper()
	t.Parallel()
	test(t, onDouble(t))
}

// TestKilledAtEachCall: the agent's process is killed, as by kill -9, at each call that it makes to the engine for a new
// application, before the call takes effect or after it. The next process ends where an undisturbed one does.
func TestKilledAtEachCall(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after=%v", after), func(t *testing.T) {
			t.Parallel()
			m := onDouble(t)
			struck := 0
			for n := 1; ; n++ {
				var calls atomic.Int64
				var writes atomic.Bool // reading leaves nothing behind; between two writes one place is enough
				nth := func(call string) bool {
					if strings.HasPrefix(call, http.MethodGet) || strings.HasPrefix(call, http.MethodHead) {
						return false
					}
					if calls.Add(1) != int64(n) {
						return false
					}
					writes.Store(true)
					m.strike()
					return true
				}
				if after {
					m.double.Lose(nth)
				} else {
					m.double.Fail(nth)
				}
				id := m.submit(m.images[0])
				m.start()
				m.await(func() bool {
					return writes.Load() || slices.Equal(m.containers(), []string{"running web:1", "running web:1"})
				},
					func() string { return fmt.Sprint(m.containers()) })
				m.double.Fail(nil)
				m.double.Lose(nil)
				if writes.Load() {
					struck++
					m.kill()
					m.start()
				}
				message := fmt.Sprintf("killed at call %d", n)
				m.run(m.images[0], 2, message)
				m.reported("harbour", message)
				m.records()
				m.delete(id)
				m.gone(message)
				m.kill()
				if !writes.Load() {
					break
				}
			}
			require.Greater(t, struck, 5)
		})
	}
}

// TestKilled kills the agent's process while an application is begun, replaced and removed, and the engine's where it can be.
func TestKilled(t *testing.T) { doubled(t, killed) }

func TestKilled_real(t *testing.T) { killed(t, onReal(t)) }

func killed(t *testing.T, m *machine) {
	t.Helper()
	id := m.submit(m.images[0])
	for range 3 { // each dies somewhat later
		m.start()
		until := time.Now().Add(patience)
		for before := len(m.containers()) + len(m.left()); len(m.containers())+len(m.left()) == before && time.Now().Before(until); {
			if slices.Equal(m.containers(), slices.Repeat([]string{"running " + m.images[0]}, 2)) {
				break
			}
			time.Sleep(time.Millisecond)
		}
		m.kill()
	}
	m.start()
	m.run(m.images[0], 2, "begun")
	m.reported("harbour", "begun")
	m.records()

	m.call(http.MethodPut, "/jobmanager/groups/"+id, replaced(m.images[1]), http.StatusOK)
	m.await(func() bool {
		return !slices.Equal(m.containers(), slices.Repeat([]string{"running " + m.images[0]}, 2))
	},
		func() string { return "it does not begin to replace them" })
	m.kill()
	if m.double == nil {
		m.killEngine()
		m.awaitEngine()
	}
	m.start()
	m.run(m.images[1], 2, "replaced")
	m.reported("harbour", "replaced")
	m.records()

	m.delete(id)
	m.await(func() bool { return len(m.containers()) != 2 }, func() string { return "it does not begin to remove them" })
	m.kill()
	m.start()
	m.gone("removed")
	m.forgotten(id, "removed")
}

// TestWithoutAController: what runs goes on and is kept up while the controller is away, through a reboot too; what was
// placed elsewhere meanwhile is removed when it is back.
func TestWithoutAController(t *testing.T) { doubled(t, withoutAController) }

func TestWithoutAController_real(t *testing.T) { withoutAController(t, onReal(t)) }

func withoutAController(t *testing.T, m *machine) {
	t.Helper()
	m.submit(m.images[0])
	m.start()
	m.run(m.images[0], 2, "begun")
	m.reported("harbour", "begun")

	m.away.Store(true)
	listed, err := m.client.ContainerList(t.Context(), client.ContainerListOptions{Filters: ours()})
	require.NoError(t, err)
	_, err = m.client.ContainerRemove(t.Context(), listed.Items[0].ID, client.ContainerRemoveOptions{Force: true})
	require.NoError(t, err)
	m.run(m.images[0], 2, "somebody removed one of them")

	m.reboot()
	m.start()
	m.run(m.images[0], 2, "rebooted")
	m.records()

	m.SaveTopology(inprocess.Drain(m.machines(), "harbour/harbour-host"))
	other := m.site.start("agent-quay", "quay", m.engine.Host)
	until := time.Now().Add(patience)
	for len(m.engine.Containers()) != 2 {
		require.True(t, time.Now().Before(until), "it was not placed elsewhere")
		m.work(other)
	}
	m.reported("quay", "placed elsewhere")
	require.Equal(t, slices.Repeat([]string{"running " + m.images[0]}, 2), m.containers(), "nobody could tell this machine yet")

	m.away.Store(false)
	m.gone("the controller is back")
	m.reported("quay", "in the end")
	require.Len(t, m.engine.Containers(), 2)
}

// TestTheEngineIsKilled: containers run on, or again, and the agent goes on when the engine is back.
func TestTheEngineIsKilled_real(t *testing.T) {
	m := onReal(t)
	m.submit(m.images[0])
	m.start()
	m.run(m.images[0], 2, "begun")
	m.reported("harbour", "begun")
	for range 3 {
		m.killEngine()
		m.awaitEngine()
		m.run(m.images[0], 2, "the engine was killed")
	}
	m.reported("harbour", "in the end")
	m.records()
}

// TestTheMachineRefusesItsOwn: a machine that does not allow it refuses what its owner keeps to itself, though the controller
// and the person who asks for it would allow it.
func TestTheMachineRefusesItsOwn(t *testing.T) { doubled(t, refuses) }

func TestTheMachineRefusesItsOwn_real(t *testing.T) { refuses(t, onReal(t)) }

func refuses(t *testing.T, m *machine) {
	t.Helper()
	m.start()
	for asked, says := range map[string]string{
		"privileged: true":   "takes rights beyond those of a container",
		"volumes: [/:/host]": "mounts / of the host",
		"network_mode: host": "shares the host's own",
	} {
		id := m.submitText(strings.Replace(strings.ReplaceAll(descriptor, "IMAGE", m.images[0]), "deploy: {replicas: 2}", asked, 1))
		m.await(func() bool {
			_, conditions := m.only()
			seen := job.Job{Conditions: conditions}
			c := seen.Condition(job.ConditionDegraded)
			if c == nil || c.Status != "True" {
				return false
			}
			require.Equal(t, orchestrator.ReasonDenied, c.Reason)
			require.Contains(t, c.Message, says)
			require.Contains(t, c.Message, "which this machine does not allow")
			return true
		}, func() string {
			_, conditions := m.only()
			return fmt.Sprintf("%s: %v", asked, conditions)
		})
		require.Empty(t, m.containers(), asked)
		m.delete(id)
		m.forgotten(id, asked)
		m.gone(asked)
	}
}

// forgotten waits until the controller knows nothing of the application any more.
func (m *machine) forgotten(id, message string) {
	m.t.Helper()
	m.await(func() bool {
		r, err := http.NewRequestWithContext(m.t.Context(), http.MethodGet, m.URL+"/jobmanager/groups/"+id, http.NoBody)
		require.NoError(m.t, err)
		r.Header.Set("Authorization", "Bearer "+m.Token(auth.Operator))
		resp, err := http.DefaultClient.Do(r)
		require.NoError(m.t, err)
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusNotFound
	}, func() string { return message + ": the controller still has the application" })
}
