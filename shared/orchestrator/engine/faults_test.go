package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/conformance"
	"github.com/littoral-project/littoral/shared/orchestrator/engine"
	"github.com/littoral-project/littoral/shared/problem"
	double "github.com/littoral-project/littoral/test/engine"
)

// whole demands that there is what the project asks for and nothing else: n containers of the image that run in two networks, and
// one record beside the volume of the project.
func whole(t *testing.T, server *double.Server, image string, n int, message string) {
	t.Helper()
	containers := server.Containers()
	require.Len(t, containers, n, message)
	for _, c := range containers {
		require.Equal(t, []string{"running", image}, []string{c.State, c.Image}, message)
		require.Equal(t, "text", c.Files["/settings"], message)
		require.Len(t, c.Networks, 2, message)
	}
	networks, volumes := server.Names()
	require.Len(t, networks, 2*min(n, 1), message)
	records := 0
	for _, name := range volumes {
		if strings.Contains(name, "-record-") {
			records++
		}
	}
	require.Equal(t, min(n, 1), records, "%s: %v", message, volumes)
	require.Equal(t, min(n, 1), len(volumes)-records, "%s: %v", message, volumes)
}

// service is a job of one service with a config, a volume, two networks and this image.
func service(image string) *job.Job {
	j := run("restart: always\ndeploy: {replicas: 2}\nconfigs: [settings]\nvolumes: [data:/data]\nnetworks: [default, back]\n" +
		"^configs: {settings: {content: text}}\n^volumes: {data: {}}\n^networks: {back: {}}")
	return withImage(j, image)
}

// withImage is the job's instruction with another image than that of run.
func withImage(j *job.Job, image string) *job.Job {
	j.Instruction.Contents = slices.Clone(j.Instruction.Contents)
	j.Instruction.Contents[0].YAML = strings.Replace(j.Instruction.Contents[0].YAML, "image: web:1\n", "image: "+image+"\n", 1)
	return j
}

// TestACallThatFailsAnywhereIsMadeUpFor: whichever call to the engine of a creation, a replacement, a scaling or a removal
// fails, or takes effect and is not answered, a repeat ends where an undisturbed one does. The next to try may be another
// agent, since this one may have been killed for it.
func TestACallThatFailsAnywhereIsMadeUpFor(t *testing.T) {
	t.Parallel()
	for step, row := range map[string]struct {
		next  func(j *job.Job) *job.Job
		image string
		n     int
	}{
		"creation": {func(j *job.Job) *job.Job { return j }, "web:1", 2},
		"replacement": {func(j *job.Job) *job.Job {
			other := conformance.As(j, job.Replace)
			other.Epoch = 2
			return withImage(other, "web:2")
		}, "web:2", 2},
		"scaling": {func(j *job.Job) *job.Job { return conformance.Ask(j, job.ScaleUp) }, "web:1", 3},
		"removal": {func(j *job.Job) *job.Job { return conformance.As(j, job.Delete) }, "", 0},
	} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s after=%v", step, after), func(t *testing.T) {
				t.Parallel()
				for n := 1; ; n++ {
					m, server := onDouble(t)
					j := service("web:1")
					if step != "creation" {
						state, conditions := m.do(t, j)
						require.Equal(t, job.Finished, state, "%v", conditions)
					}
					asked := row.next(j)
					calls, broken := 0, ""
					nth := func(call string) bool {
						if calls++; calls == n {
							broken = call
						}
						return calls == n
					}
					if after {
						server.Lose(nth)
					} else {
						server.Fail(nth)
					}
					try(t, m.Orchestrator, asked)
					server.Fail(nil)
					server.Lose(nil)
					if broken == "" { // it needs fewer calls
						require.Greater(t, n, 5)
						whole(t, server, row.image, row.n, "undisturbed")
						return
					}
					next := other(t, server)
					if step == "creation" && n%2 == 0 { // a reboot without a controller comes first
						require.NoError(t, next.Keep(t.Context()))
					}
					m.Orchestrator = next
					state, conditions := m.do(t, asked)
					require.Equal(t, job.Finished, state, "%d %s: %v", n, broken, conditions)
					whole(t, server, row.image, row.n, fmt.Sprintf("call %d, %s", n, broken))
					if row.n > 0 {
						m.do(t, conformance.As(asked, job.Delete))
						whole(t, server, "", 0, fmt.Sprintf("call %d, %s, removed", n, broken))
					}
				}
			})
		}
	}
}

// other is another process at the same engine.
func other(t *testing.T, server *double.Server) *engine.Engine {
	t.Helper()
	c, err := client.New(client.WithHost(server.Host), client.WithDialContext(server.Dial))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return engine.New(c, engine.Options{Clusters: []string{"one", "two"}})
}

// try carries the job out once. It may fail in a way that asks for a repeat only, or by the answer of an engine that fails.
func try(t *testing.T, o orchestrator.Orchestrator, j *job.Job) {
	t.Helper()
	do := o.Apply
	if j.Type == job.Delete {
		do = o.Remove
	}
	err := do(t.Context(), j)
	if err != nil && strings.Contains(err.Error(), "the engine fails") {
		return
	}
	if err == nil || errors.Is(err, orchestrator.ErrSilent) || errors.Is(err, orchestrator.ErrFenced) {
		return
	}
	require.Equal(t, problem.Unavailable, problem.KindOf(err), "%v", err)
}

// TestTwoWritersAtOnce: two processes at one engine, of which one follows an older decision, end with the newer one whoever
// was first at each call.
func TestTwoWritersAtOnce(t *testing.T) {
	t.Parallel()
	for range 25 {
		m, server := onDouble(t)
		older := service("web:1")
		newer := withImage(conformance.As(older, job.Replace), "web:2")
		newer.Epoch = 2
		var all sync.WaitGroup
		for _, j := range []*job.Job{older, newer, older, newer} {
			at := other(t, server)
			all.Go(func() { try(t, at, j) })
		}
		all.Wait()
		state, conditions := m.do(t, newer)
		require.Equal(t, job.Finished, state, "%v", conditions)
		whole(t, server, "web:2", 2, "after both")
		require.ErrorIs(t, m.Orchestrator.Apply(t.Context(), older), orchestrator.ErrFenced)
		require.ErrorIs(t, m.Orchestrator.Remove(t.Context(), conformance.As(older, job.Delete)), orchestrator.ErrFenced)
		whole(t, server, "web:2", 2, "after the older was fenced")

		removed := conformance.As(newer, job.Delete)
		for _, j := range []*job.Job{newer, removed, removed} {
			at := other(t, server)
			all.Go(func() { try(t, at, j) })
		}
		all.Wait()
		state, conditions = m.do(t, removed)
		require.Equal(t, job.Finished, state, "%v", conditions)
		whole(t, server, "", 0, "removed")
	}
}

// twice sends each call that puts a container into a network a second time, as a process that was a moment later would.
type twice struct {
	http.RoundTripper
	calls *atomic.Int32
}

func (r twice) RoundTrip(request *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(request.URL.Path, "/connect") {
		return r.RoundTripper.RoundTrip(request)
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	first, err := r.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	_ = first.Body.Close()
	r.calls.Add(1)
	request.Body = io.NopCloser(bytes.NewReader(body))
	return r.RoundTripper.RoundTrip(request)
}

// TestANetworkThatAnotherProcessHasJustJoined: the engine refuses to put a container into a network twice, and that is no
// failure of the job.
func TestANetworkThatAnotherProcessHasJustJoined(t *testing.T) {
	t.Parallel()
	m, server := onDouble(t)
	var calls atomic.Int32
	through := &http.Client{Transport: twice{&http.Transport{DialContext: server.Dial}, &calls}}
	t.Cleanup(through.CloseIdleConnections)
	c, err := client.New(client.WithHost(server.Host), client.WithHTTPClient(through))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	j := service("web:1")
	require.NoError(t, engine.New(c, engine.Options{Clusters: []string{"one", "two"}}).Apply(t.Context(), j))
	require.Positive(t, calls.Load())
	state, conditions := m.do(t, j)
	require.Equal(t, job.Finished, state, "%v", conditions)
	whole(t, server, "web:1", 2, "joined twice")
}
