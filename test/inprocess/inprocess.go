// Package inprocess runs the functions of the registry inside a test: their routes behind one base URL, their events
// through a Broker that reads the Triggers of triggers/, and on request a small infrastructure and an agent.
//
//	func TestMain(m *testing.M) { storetest.Main(m) }
//
//	sys := inprocess.Start(t)          // real Postgres, real tokens, all functions
//	sys.SaveTopology(inprocess.Topology(time.Now()))
//	... call sys.URL with sys.Token(auth.Operator) ...
//	sys.Agent("ocm", "agent-1").Work() // takes what is there and makes it available
//
// Start delivers each event before the call that caused it returns, so a test sees a settled system without waiting. A
// harness that wants to hold, double, reorder or lose events starts with Hold, and one whose functions run elsewhere with
// NewBroker.
package inprocess

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/boot"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/topology"
	"github.com/littoral-project/littoral/triggers"
)

// System is everything that runs.
type System struct {
	URL    string // base of all routes; empty for one that holds
	Routes http.Handler
	DB     *store.DB
	Broker *Broker
	Issuer *Issuer

	t testing.TB
}

// Start runs every function of the registry, and those given beside it, until the test ends, with the store of t and
// events delivered at once. All settings are at their defaults.
func Start(t testing.TB, more ...map[string]function.Entry) *System {
	t.Helper()
	return StartWith(t, nil, more...)
}

// StartWith is Start with settings.
func StartWith(t testing.TB, given settings.Lookup, more ...map[string]function.Entry) *System {
	t.Helper()
	s, consumers := assemble(t, func(*Issuer) settings.Lookup { return given }, more...)
	// SaveTopology takes the part of the aggregator, since there is no telemetry for the real one to query.
	consumers["aggregator-tick"] = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	s.Broker.Connect(consumers, true)
	s.Broker.settle = s.DB.Flush
	server := httptest.NewUnstartedServer(awaitDelivery{s.Routes, s.DB})
	server.Config.Protocols = boot.Protocols()
	server.Start()
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Hold makes every function of the registry but those left out, and serves none: the test calls Routes, and delivers what the
// Broker holds when it likes. The settings may need a token of the issuer.
func Hold(t testing.TB, given func(*Issuer) settings.Lookup, without ...string) *System {
	t.Helper()
	s, consumers := assemble(t, given)
	for _, name := range without {
		delete(consumers, name)
	}
	s.Broker.Connect(consumers, false)
	return s
}

func assemble(
	t testing.TB, given func(*Issuer) settings.Lookup, more ...map[string]function.Entry,
) (s *System, consumers map[string]http.Handler) {
	t.Helper()
	broker, err := NewBroker(triggers.Files)
	require.NoError(t, err)
	s = &System{Broker: broker, Issuer: NewIssuer(t), DB: storetest.NewWithPublisher(t, broker), t: t}
	s.Routes, consumers, err = Mount(function.Platform{
		DB: s.DB, Auth: s.Issuer.Verifier(), Stopping: t.Context(), Settings: given(s.Issuer),
	}, more...)
	require.NoError(t, err)
	return s, consumers
}

// awaitDelivery answers when all that the call has announced is delivered, so that a test sees its effects.
type awaitDelivery struct {
	http.Handler

	db *store.DB
}

func (h awaitDelivery) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	held := &held{to: w, kept: httptest.NewRecorder()}
	h.Handler.ServeHTTP(held, r)
	_ = h.db.Flush(r.Context())
	held.release()
}

// held keeps an answer until it is released, or flushed: a stream does not wait for its end.
type held struct {
	to   http.ResponseWriter
	kept *httptest.ResponseRecorder // nil once it is released
}

func (h *held) writer() http.ResponseWriter {
	if h.kept != nil {
		return h.kept
	}
	return h.to
}

func (h *held) Header() http.Header            { return h.writer().Header() }
func (h *held) WriteHeader(code int)           { h.writer().WriteHeader(code) }
func (h *held) Write(text []byte) (int, error) { return h.writer().Write(text) }

func (h *held) Flush() {
	h.release()
	_ = http.NewResponseController(h.to).Flush()
}

// Unwrap returns the connection, for its deadlines.
func (h *held) Unwrap() http.ResponseWriter { return h.to }

func (h *held) release() {
	if h.kept == nil {
		return
	}
	kept := h.kept
	h.kept = nil
	maps.Copy(h.to.Header(), kept.Header())
	h.to.WriteHeader(kept.Code)
	_, _ = h.to.Write(kept.Body.Bytes())
}

// outside refuses calls out of a transaction, which may run again and keeps its locks until the call is answered.
type outside struct{}

func (outside) RoundTrip(r *http.Request) (*http.Response, error) {
	if store.Inside(r.Context()) {
		return nil, fmt.Errorf("%s %s is called in a transaction", r.Method, r.URL)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// Mount makes the functions of the registry and those given beside it. routes serves all their operations; consumers are the functions by name, each taking events at "/".
func Mount(
	platform function.Platform, more ...map[string]function.Entry,
) (routes http.Handler, consumers map[string]http.Handler, err error) {
	platform.Transport = outside{}
	router := function.NewRouter()
	consumers = make(map[string]http.Handler, len(functions.Registry))
	all := maps.Clone(functions.Registry)
	for _, entries := range more {
		maps.Copy(all, entries)
	}
	for _, entry := range all {
		h, err := entry.Handler(platform.Env(entry.Name))
		if err != nil {
			return nil, nil, err
		}
		consumers[entry.Name] = h
		for _, route := range entry.Spec.Patterns() {
			router.Handle(route, h)
		}
	}
	return router, consumers, nil
}

// Token returns an access token with the role.
func (s *System) Token(role auth.Role) string {
	s.t.Helper()
	return s.Issuer.Token(s.t, role)
}

// staleAfter is when a silent node counts as lost in these tests.
const staleAfter = time.Minute

// SaveTopology stores the taxonomy as the picture of now, as the aggregator would, and lets everyone react.
func (s *System) SaveTopology(taxonomy *topology.Taxonomy) {
	s.t.Helper()
	err := s.DB.Tx(s.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := topology.Save(ctx, tx, taxonomy, time.Now(), staleAfter)
		return err
	})
	require.NoError(s.t, err)
	require.NoError(s.t, s.DB.Flush(s.t.Context()))
}

// Topology returns two clusters seen at the given time: hub (ocm; hub-1 and hub-2, amd64, 8 cores) and edge (nuvla;
// edge-1 and edge-2, arm64, 4 cores; edge-1 has a camera).
func Topology(at time.Time) *topology.Taxonomy {
	node := func(name, arch string, cores, gib, sca, watts float64) topology.Node {
		return topology.Node{
			Name: name, Type: topology.Kubernetes, Engine: topology.Kubernetes,
			LastSeen: topology.Known(float64(at.UnixMilli()) / 1000), ScaScore: topology.Known(sca),
			StaticMetrics: topology.StaticMetrics{
				CPUArchitecture: arch, CPUCores: topology.Known(cores), RAMMemory: topology.Known(gib * (1 << 30)),
			},
			DynamicMetrics: topology.DynamicMetrics{
				CPUUsagePercent: topology.Known(10), MemoryUsagePercent: topology.Known(20),
				FreeRAM: topology.Known(0.8 * gib * (1 << 30)), UsedRAM: topology.Known(0.2 * gib * (1 << 30)),
				CPUPowerWatts: topology.Known(watts),
			},
		}
	}
	camera := node("edge-1", "aarch64", 4, 8, 70, 12)
	camera.Devices = map[string]topology.Device{
		"camera": {Name: "camera", Type: "video", Status: topology.DeviceAvailable, Path: "/dev/video0"},
	}
	return &topology.Taxonomy{Cluster: map[string]topology.Cluster{
		"hub": {
			Type: kinds.OCM, UUID: "hub-uuid", Name: "hub", Engine: topology.Kubernetes, AgentID: "agent-hub",
			Node: map[string]topology.Node{
				"hub-1": node("hub-1", "x86_64", 8, 32, 90, 60), "hub-2": node("hub-2", "x86_64", 8, 32, 85, 80),
			},
		},
		"edge": {
			Type: kinds.Nuvla, UUID: "edge-uuid", Name: "edge", Engine: topology.Kubernetes, AgentID: "agent-edge",
			Node: map[string]topology.Node{"edge-1": camera, "edge-2": node("edge-2", "aarch64", 4, 8, 55, 10)},
		},
	}}
}

// Drain marks nodes of the taxonomy, named "cluster/node", as drained and returns it.
func Drain(taxonomy *topology.Taxonomy, names ...string) *topology.Taxonomy {
	for _, name := range names {
		found := false
		for _, p := range taxonomy.Places() {
			if p.Cluster+"/"+p.Node != name {
				continue
			}
			n, no := *p.At, false
			n.Schedulable = &no
			taxonomy.Cluster[p.ClusterKey].Node[p.NodeKey] = n
			found = true
		}
		if !found {
			panic(fmt.Sprintf("inprocess: there is no node %s", name))
		}
	}
	return taxonomy
}
