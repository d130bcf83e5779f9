package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/knative"
	"github.com/littoral-project/littoral/shared/cli"
	"github.com/littoral-project/littoral/shared/deadletter"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/loopback"
	"github.com/littoral-project/littoral/shared/peer"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/triggers"
)

// two are the options of two hosts that work with each other, shore and harbour, with the lighthouse at shore.
func two(t *testing.T) (shore, harbour Options) {
	t.Helper()
	both := [2]Options{options(newHome(t)), options(newHome(t))}
	names := [2]string{"shore", "harbour"}
	for i := range both {
		at, err := loopback.Free(t.Context())
		require.NoError(t, err)
		both[i].Addr, both[i].Database = at.String(), storetest.URL(t)
	}
	for i := range both {
		other := both[1-i]
		peers, err := json.Marshal([]peer.Peer{{
			Name: names[1-i], Address: "http://" + other.Addr, Subject: "controller",
			TokenFile: filepath.Join(other.Home, "token-controller"),
		}})
		require.NoError(t, err)
		both[i].Settings = settings.Map(map[string]string{
			"CONTROLLER_NAME": names[i], "CONTROLLER_PEERS": string(peers), "LIGHTHOUSE": "http://" + both[0].Addr,
			"CONTROLLER_LEASE": "10s", "CONTROLLER_MARGIN": "5s",
		})
	}
	return both[0], both[1]
}

// say gives the command line to the host as an operator, and returns what it printed.
func say(t *testing.T, h *Host, line string) string {
	t.Helper()
	env := map[string]string{"LITTORAL_SERVER": h.URL(), "LITTORAL_TOKEN_FILE": h.TokenFile("operator")}
	var out bytes.Buffer
	sh := cli.Shell{Stdout: &out, Stderr: &out, Getenv: func(name string) string { return env[name] }}
	require.Zero(t, sh.Run(t.Context(), strings.Fields(line)), "%s: %s", line, &out)
	return out.String()
}

// statusOf is the application's at the host; "" where it is not known.
func statusOf(t *testing.T, h *Host, home, id string) string {
	t.Helper()
	var answer struct {
		Status any `json:"status"` // a problem's is a number
	}
	if ask(t, h.URL(), home, "viewer", "GET", "/jobmanager/groups/"+id, "", &answer) != http.StatusOK {
		return ""
	}
	return fmt.Sprint(answer.Status)
}

// runsAt waits until the application is available at the host, which may not know it yet.
func runsAt(t *testing.T, h *Host, home, id string) {
	t.Helper()
	require.Eventually(t, func() bool { return statusOf(t, h, home, id) == "Available" }, 2*patience, 100*time.Millisecond)
}

// knowsNodes waits until the host knows nodes, so that it can offer something.
func knowsNodes(t *testing.T, h *Host) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(say(t, h, "get nodes -o name"), "node/") }, patience, 100*time.Millisecond)
}

// TestAnApplicationMovesBetweenTwoHosts, by command; is taken over when the host that has it is lost; and the host that comes
// back removes what it had.
func TestAnApplicationMovesBetweenTwoHosts(t *testing.T) {
	t.Parallel()
	atShore, atHarbour := two(t)
	shore := start(t, atShore)
	harbour, err := Start(t.Context(), atHarbour)
	require.NoError(t, err)

	littoral := func(h *Host, line string) string { return say(t, h, line) }
	require.Eventually(t, func() bool {
		seen := littoral(shore, "get controllers")
		return strings.Contains(seen, "shore") && strings.Contains(seen, "harbour") && strings.Count(seen, "Healthy") == 2
	}, patience, 100*time.Millisecond, "both register, and the lighthouse sees both")

	var g group
	require.Equal(t, http.StatusCreated, ask(t, shore.URL(), atShore.Home, "operator", "POST", "/jobmanager/groups", example(t), &g))
	available(t, shore.URL(), atShore.Home, g.ID)
	began := time.Now()
	littoral(shore, "move hello --to harbour")
	status := func(h *Host, home string) string { return statusOf(t, h, home, g.ID) }
	runsAt(t, harbour, atHarbour.Home, g.ID)
	t.Logf("moved in %s", time.Since(began).Round(10*time.Millisecond))
	require.Equal(t, "Away", status(shore, atShore.Home))
	require.Eventually(t, func() bool {
		return strings.Contains(littoral(shore, "get apps -o wide"), "at controller harbour: Available")
	}, patience, 100*time.Millisecond, "it is followed from where it was submitted")
	bothTell(t, shore, harbour)
	require.Equal(t, http.StatusConflict, ask(t, shore.URL(), atShore.Home, "operator", "PUT", "/jobmanager/groups/stop/"+g.ID, "", nil))

	stop(t, harbour)
	available(t, shore.URL(), atShore.Home, g.ID)
	harbour = start(t, atHarbour)
	require.Eventually(t, func() bool {
		return strings.Contains(littoral(harbour, "get handovers"), "over") && status(harbour, atHarbour.Home) == ""
	}, patience, 100*time.Millisecond, "it hears that the other one has it, and removes what it had")
	require.Equal(t, "Available", status(shore, atShore.Home))
}

// bothTell requires that what happened and what was written at either host is read from the other.
func bothTell(t *testing.T, shore, harbour *Host) {
	t.Helper()
	at, there := say(t, shore, "events hello"), say(t, harbour, "events hello")
	require.Contains(t, at, "at harbour: ")
	require.Contains(t, at, "handover.held")
	require.Contains(t, there, "at shore: ")
	require.Contains(t, there, "application.submitted")
	require.Eventually(t, func() bool {
		return strings.Contains(say(t, shore, "logs hello"), "at harbour, ")
	}, patience, 100*time.Millisecond, "its lines and where they come from")
}

// all does something with each node of the host, and returns their names.
func all(t *testing.T, h *Host, command string) []string {
	t.Helper()
	nodes := strings.Fields(strings.ReplaceAll(say(t, h, "get nodes -o name"), "node/", ""))
	require.NotEmpty(t, nodes)
	for _, node := range nodes {
		say(t, h, command+" "+node)
	}
	return nodes
}

// TestWhatFitsNowhereGoesToAnotherHost where the setting allows it, as soon as that has room, and comes home by command when there is
// room again.
func TestWhatFitsNowhereGoesToAnotherHost(t *testing.T) {
	t.Parallel()
	atShore, atHarbour := two(t)
	names := atShore.Settings
	atShore.Settings = func(name string) (string, bool) {
		if name == "CONTROLLER_OVERFLOW" {
			return "1s", true
		}
		return names(name)
	}
	shore, harbour := start(t, atShore), start(t, atHarbour)
	knowsNodes(t, harbour)
	nodes := all(t, shore, "cordon")
	full := all(t, harbour, "cordon")
	var g group
	require.Equal(t, http.StatusCreated, ask(t, shore.URL(), atShore.Home, "operator", "POST", "/jobmanager/groups", example(t), &g))
	require.Eventually(t, func() bool {
		return strings.Count(say(t, shore, "events "+g.ID), "stays here: no controller takes it") > 1
	}, patience, 100*time.Millisecond, "there is no room at the peer either, which is asked again")
	require.Empty(t, statusOf(t, harbour, atHarbour.Home, g.ID))
	for _, node := range full {
		say(t, harbour, "uncordon "+node)
	}
	runsAt(t, harbour, atHarbour.Home, g.ID)
	require.Equal(t, "Away", statusOf(t, shore, atShore.Home, g.ID))
	// Whether the placement that failed or the reminder of what waits offers it first is a race.
	require.Regexp(t, "to be handed over to any controller that takes it: (nowhere here fits web, greetings|it still fits nowhere here)",
		say(t, shore, "events "+g.ID))

	for _, node := range nodes {
		say(t, shore, "uncordon "+node)
	}
	say(t, shore, "move "+g.ID+" --home")
	runsAt(t, shore, atShore.Home, g.ID)
}

// TestApplyAtAnotherController submits at one host what another is to run.
func TestApplyAtAnotherController(t *testing.T) {
	t.Parallel()
	atShore, atHarbour := two(t)
	shore, harbour := start(t, atShore), start(t, atHarbour)
	knowsNodes(t, harbour)
	_, id, found := strings.Cut(say(t, shore, "apply -f ../../../test/examples/hello.yaml --controller any -o name"), "app/")
	require.True(t, found)
	runsAt(t, harbour, atHarbour.Home, strings.TrimSpace(id))
}

// hurried are the triggers of a Broker that gives an event up after its first retry.
type hurried struct{ fs.FS }

var retries = regexp.MustCompile(`retry: \d+`)

func (h hurried) Open(name string) (fs.File, error) {
	if name != "kustomization.yaml" {
		return h.FS.Open(name)
	}
	text, err := fs.ReadFile(h.FS, name)
	if err != nil {
		return nil, err
	}
	return fstest.MapFS{name: {Data: retries.ReplaceAll(text, []byte("retry: 1"))}}.Open(name)
}

// TestWhatCannotBeDeliveredToAPeerIsADeadLetter of the function that gives applications, and is sent again by a person.
func TestWhatCannotBeDeliveredToAPeerIsADeadLetter(t *testing.T) {
	t.Parallel()
	atShore, atHarbour := two(t)
	atShore.Files = map[string]fs.FS{"/knative": knative.Files, "/triggers": hurried{triggers.Files}}
	shore := start(t, atShore)
	var g group
	require.Equal(t, http.StatusCreated, ask(t, shore.URL(), atShore.Home, "operator", "POST", "/jobmanager/groups", example(t), &g))
	available(t, shore.URL(), atShore.Home, g.ID)
	say(t, shore, "move hello --to harbour") // which is not there
	var letters []deadletter.Letter
	require.Eventually(t, func() bool {
		require.Equal(t, 200, ask(t, shore.URL(), atShore.Home, "viewer", "GET", "/events/dead", "", &letters))
		return len(letters) == 1 && letters[0].Consumer == "controller-give"
	}, patience, 50*time.Millisecond, "%+v", letters)
	require.Equal(t, events.HandoverRequested, letters[0].Type)
	require.Equal(t, http.StatusServiceUnavailable, letters[0].Code)
	require.Equal(t, "Available", statusOf(t, shore, atShore.Home, g.ID), "it stays, and is still offered")

	harbour := start(t, atHarbour)
	knowsNodes(t, harbour)
	say(t, shore, "replay "+letters[0].EventID)
	runsAt(t, harbour, atHarbour.Home, g.ID)
	require.Equal(t, "Away", statusOf(t, shore, atShore.Home, g.ID))
}

// shown is what a command that goes on has shown so far.
type shown struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *shown) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(text)
}

func (s *shown) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// follow begins a command that goes on until the test ends.
func follow(t *testing.T, h *Host, line string) *shown {
	t.Helper()
	env := map[string]string{"LITTORAL_SERVER": h.URL(), "LITTORAL_TOKEN_FILE": h.TokenFile("operator")}
	out := &shown{}
	sh := cli.Shell{Stdout: out, Stderr: out, Getenv: func(name string) string { return env[name] }}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		sh.Run(ctx, strings.Fields(line))
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return out
}

// TestFollowersSeeBothControllers: who watches events or logs at one controller goes on to see what happens while the application
// moves to the other one, and back.
func TestFollowersSeeBothControllers(t *testing.T) {
	t.Parallel()
	atShore, atHarbour := two(t)
	shore, harbour := start(t, atShore), start(t, atHarbour)
	knowsNodes(t, harbour)
	var g group
	require.Equal(t, http.StatusCreated, ask(t, shore.URL(), atShore.Home, "operator", "POST", "/jobmanager/groups", example(t), &g))
	available(t, shore.URL(), atShore.Home, g.ID)
	happens, written := follow(t, shore, "events hello -w"), follow(t, shore, "logs -f hello")
	sees := func(out *shown, what string, times int) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Count(out.String(), what) >= times }, patience, 100*time.Millisecond,
			"%q is missing %d times in\n%s", what, times, out)
	}
	line := regexp.MustCompile(`(?m)^(\S+) +\| `)
	pods := func() int {
		names := map[string]bool{}
		for _, found := range line.FindAllStringSubmatch(written.String(), -1) {
			names[found[1]] = true
		}
		return len(names)
	}
	require.Eventually(t, func() bool { return pods() > 0 }, patience, 100*time.Millisecond, "it writes here: %s", written)
	before := pods()

	say(t, shore, "move hello --to harbour")
	runsAt(t, harbour, atHarbour.Home, g.ID)
	sees(happens, "handover.released", 1)
	sees(happens, "at harbour: responsible for it", 1)
	sees(written, ": at harbour, ", 2)
	require.Eventually(t, func() bool { return pods() > before }, patience, 100*time.Millisecond, "it writes there: %s", written)
	there := follow(t, harbour, "events hello -w")
	sees(there, "at shore: ", 1)

	placed := strings.Count(happens.String(), "job.placed")
	say(t, shore, "move hello --home")
	runsAt(t, shore, atShore.Home, g.ID)
	sees(happens, "handover.home", 1)
	sees(there, "gave it back", 1)
	sees(happens, "job.placed", placed+2)
	after := pods()
	require.Eventually(t, func() bool { return pods() > after || pods() > before+1 }, patience, 100*time.Millisecond)
}
