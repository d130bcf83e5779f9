package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"github.com/osrg/gobgp/v4/pkg/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/loopback"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/swm/topologies"
	"github.com/littoral-project/littoral/test/inprocess"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// router is a speaker of BGP that tells of a network.
type router struct {
	t      *testing.T
	server *server.BgpServer
}

func startRouter(t *testing.T, at netip.AddrPort) router {
	t.Helper()
	level := &slog.LevelVar{}
	r := router{t, server.NewBgpServer(server.LoggerOption(slog.New(slog.DiscardHandler), level))}
	go r.server.Serve()
	require.NoError(t, r.server.StartBgp(t.Context(), &api.StartBgpRequest{Global: &api.Global{
		Asn: 65001, RouterId: "10.0.0.1", ListenPort: int32(at.Port()), ListenAddresses: []string{at.Addr().String()},
	}}))
	require.NoError(t, r.server.AddPeer(t.Context(), &api.AddPeerRequest{Peer: &api.Peer{
		Conf:            &api.PeerConf{NeighborAddress: at.Addr().String(), PeerAsn: 64512},
		Transport:       &api.Transport{PassiveMode: true},
		GracefulRestart: &api.GracefulRestart{Enabled: true, RestartTime: 120},
		AfiSafis: []*api.AfiSafi{{
			Config:            &api.AfiSafiConfig{Family: linkState, Enabled: true},
			MpGracefulRestart: &api.MpGracefulRestart{Config: &api.MpGracefulRestartConfig{Enabled: true}},
		}},
	}}))
	return r
}

func descriptorOf(id string, kind bgp.LsTLVType) *bgp.LsTLVNodeDescriptor {
	d := bgp.NewLsTLVNodeDescriptor(&bgp.LsNodeDescriptor{Asn: 65001, IGPRouterID: id}, kind)
	return &d
}

func nodeNLRI(id string) *bgp.LsAddrPrefix {
	local := descriptorOf(id, bgp.LS_TLV_LOCAL_NODE_DESC)
	return prefixOf(bgp.LS_NLRI_TYPE_NODE, &bgp.LsNodeNLRI{LsNLRI: header(bgp.LS_NLRI_TYPE_NODE, local.Len()), LocalNodeDesc: local})
}

func linkNLRI(from, to string) *bgp.LsAddrPrefix {
	local, remote := descriptorOf(from, bgp.LS_TLV_LOCAL_NODE_DESC), descriptorOf(to, bgp.LS_TLV_REMOTE_NODE_DESC)
	return prefixOf(bgp.LS_NLRI_TYPE_LINK, &bgp.LsLinkNLRI{
		LsNLRI: header(bgp.LS_NLRI_TYPE_LINK, local.Len()+remote.Len()), LocalNodeDesc: local, RemoteNodeDesc: remote,
	})
}

func header(kind bgp.LsNLRIType, length int) bgp.LsNLRI {
	return bgp.LsNLRI{NLRIType: kind, Length: uint16(9 + length), ProtocolID: bgp.LS_PROTOCOL_ISIS_L2}
}

func prefixOf(kind bgp.LsNLRIType, nlri bgp.LsNLRIInterface) *bgp.LsAddrPrefix {
	return &bgp.LsAddrPrefix{Type: kind, Length: uint16(nlri.Len()), NLRI: nlri}
}

func (r router) path(nlri *bgp.LsAddrPrefix, about bgp.LsAttribute) *apiutil.Path {
	reach, err := bgp.NewPathAttributeMpReachNLRI(bgp.RF_LS, []bgp.PathNLRI{{NLRI: nlri}}, netip.MustParseAddr("127.0.0.1"))
	require.NoError(r.t, err)
	return &apiutil.Path{Family: bgp.RF_LS, Nlri: nlri, Attrs: []bgp.PathAttributeInterface{
		bgp.NewPathAttributeOrigin(0), reach,
		&bgp.PathAttributeLs{
			PathAttribute: bgp.PathAttribute{Flags: bgp.BGP_ATTR_FLAG_OPTIONAL, Type: bgp.BGP_ATTR_TYPE_LS},
			TLVs:          bgp.NewLsAttributeTLVs(&about),
		},
	}}
}

func (r router) tell(paths ...*apiutil.Path) {
	r.t.Helper()
	_, err := r.server.AddPath(apiutil.AddPathRequest{Paths: paths})
	require.NoError(r.t, err)
}

func (r router) node(id, name string) *apiutil.Path {
	loopback := netip.MustParseAddr("192.0.2." + id[len(id)-1:])
	return r.path(nodeNLRI(id), bgp.LsAttribute{Node: bgp.LsAttributeNode{Name: &name, LocalRouterID: &loopback}})
}

// link is one of a bandwidth in bytes and a delay in microseconds; 0 is not told.
func (r router) link(from, to string, bytes float32, delay uint32) *apiutil.Path {
	metric := uint32(10)
	about := bgp.LsAttributeLink{IGPMetric: &metric}
	if bytes > 0 {
		about.Bandwidth = &bytes
	}
	if delay > 0 {
		about.UnidirectionalLinkDelay = &bgp.LsUnidirectionalLinkDelay{Delay: delay}
	}
	return r.path(linkNLRI(from, to), bgp.LsAttribute{Link: about})
}

func (r router) withdraw(nlri *bgp.LsAddrPrefix) {
	r.t.Helper()
	require.NoError(r.t, r.server.DeletePath(apiutil.DeletePathRequest{Paths: []*apiutil.Path{r.path(nlri, bgp.LsAttribute{})}}))
}

// Systems of IS-IS.
const r1, r2, r3 = "0000.0000.0001", "0000.0000.0002", "0000.0000.0003"

// world is a controller and the agent that tells it.
type world struct {
	*inprocess.System
	t      *testing.T
	health string
}

func newWorld(t *testing.T, args ...string) world {
	t.Helper()
	w := world{inprocess.Start(t), t, ""}
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte(w.Token(auth.Operator)+"\n"), 0o600))
	bind, err := loopback.Free(t.Context())
	require.NoError(t, err)
	w.health = "http://" + bind.String() + "/healthz"
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, append(args, "--controller", w.URL, "--token-file", token, "--bind", bind.String(), "--pause", "1ms"),
			func(string) string { return "" }, io.Discard, io.Discard)
	}()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
	})
	return w
}

// stored is the document at the controller; nil if there is none.
func (w world) stored(name string) *topologies.Document {
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.URL+"/swm/topologies/"+name, http.NoBody)
	require.NoError(w.t, err)
	r.Header.Set("Authorization", "Bearer "+w.Token(auth.Viewer))
	answer, err := http.DefaultClient.Do(r)
	require.NoError(w.t, err)
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil
	}
	var has struct{ Spec topologies.Document }
	require.NoError(w.t, json.NewDecoder(answer.Body).Decode(&has))
	return &has.Spec
}

// links waits until the document has exactly these: "source target bandwidth latency".
func (w world) links(name string, want ...string) *topologies.Document {
	w.t.Helper()
	var d *topologies.Document
	require.EventuallyWithT(w.t, func(c *assert.CollectT) {
		if d = w.stored(name); assert.NotNil(c, d) {
			assert.Equal(c, want, written(d))
		}
	}, 2*time.Minute, 20*time.Millisecond)
	return d
}

func written(d *topologies.Document) (out []string) {
	for _, l := range d.Links {
		out = append(out, fmt.Sprintf("%s %s %s %s", l.Source, l.Target, l.Capabilities.BandWidthBits, l.Capabilities.LatencyNanos))
	}
	return out
}

// detectsRaces says that the test was built with -race.
var detectsRaces bool

// TestANetworkIsTold: what a router announces is at the controller, as is what it withdraws. What it told stays while there is no
// session, and is made good when there is one again.
func TestANetworkIsTold(t *testing.T) {
	t.Parallel()
	if detectsRaces {
		t.Skip("GoBGP 4.8 marks a path as stale while it shows it to whoever watches, which the race detector takes for a failure")
	}
	at, err := loopback.Free(t.Context())
	require.NoError(t, err)
	r := startRouter(t, at)
	r.tell(r.node(r1, "alpha"), r.node(r2, "beta"), r.link(r1, r2, 125e6, 2000), r.link(r2, r1, 125e6, 0))
	w := newWorld(t, "serve", "--speaker", at.String()+"@65001", "--router-id", "10.255.0.1", "--names", "192.0.2.1=hub-1")
	d := w.links("bgp", "beta hub-1 1000000000 ", "hub-1 beta 1000000000 2000000")
	require.Equal(t, []topologies.Node{{Name: "beta", Type: "NETWORK", IPAddress: "192.0.2.2"}, {Name: "hub-1", IPAddress: "192.0.2.1"}}, d.Nodes)
	require.Equal(t, "10", d.Links[0].Capabilities.OtherCapabilities["igpMetric"])

	r.tell(r.link(r2, r3, 12.5e6, 0)) // the node itself is not told of
	w.links("bgp", "beta 0000.0000.0003 100000000 ", "beta hub-1 1000000000 ", "hub-1 beta 1000000000 2000000")
	r.tell(r.link(r1, r2, 125e6, 7000))
	w.links("bgp", "beta 0000.0000.0003 100000000 ", "beta hub-1 1000000000 ", "hub-1 beta 1000000000 7000000")
	r.withdraw(linkNLRI(r2, r3))
	d = w.links("bgp", "beta hub-1 1000000000 ", "hub-1 beta 1000000000 7000000")

	r.server.Stop()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		answer, err := http.Get(w.health)
		if assert.NoError(c, err) {
			defer func() { _ = answer.Body.Close() }()
			text, _ := io.ReadAll(answer.Body)
			assert.Contains(c, string(text), errNotHeard.Error())
		}
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, d, w.stored("bgp"), "a lost session takes no link away")

	r = startRouter(t, at)
	r.tell(r.node(r1, "alpha"), r.node(r2, "beta"), r.link(r1, r2, 25e6, 7000), r.link(r2, r1, 25e6, 0))
	w.links("bgp", "beta hub-1 200000000 ", "hub-1 beta 200000000 7000000")
	r.server.Stop()
}

const found = `{"lldp": {"interface": [
  {"eth-none0": {"via": "LLDP", "chassis": {"switch-1": {"id": {"type": "mac", "value": "00:11:22:33:44:55"}, "descr": "a switch",
     "mgmt-ip": ["192.0.2.9", "fe80::1"], "capability": [{"type": "Bridge", "enabled": true}, {"type": "Station", "enabled": false}]}},
   "port": {"id": {"type": "ifname", "value": "swp7"}, "ttl": "120", "auto-negotiation": {"supported": true, "enabled": true,
     "current": "1000BaseTFD - Four-pair Category 5 UTP, full duplex mode"}}}},
  {"eth-none1": {"via": "LLDP", "chassis": {"id": {"type": "mac", "value": "00:11:22:33:44:66"},
     "capability": {"type": "Station", "enabled": true}}, "port": {"id": {"type": "mac", "value": "00:11:22:33:44:66"}}}}
]}}`

// TestNeighboursAreTold: what lldpd of several nodes has found is one document.
func TestNeighboursAreTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, other := filepath.Join(dir, "hub-1.json"), filepath.Join(dir, "hub-2.json")
	require.NoError(t, os.WriteFile(one, []byte(found), 0o600))
	require.NoError(t, os.WriteFile(other, []byte(`{"lldp": {"interface": {"eth-none0": {"chassis": {"switch-1": {
		"id": {"type": "mac", "value": "00:11:22:33:44:55"}, "capability": {"type": "Bridge", "enabled": true}}},
		"port": {"auto-negotiation": {"current": "2p5GigT - 2.5GBASE-T"}}}}}}`), 0o600))
	w := newWorld(t, "lldp", "--name", "site", "--lldp", "hub-1="+one+",hub-2="+other, "--every", "10ms", "--names", "00:11:22:33:44:66=hub-3", "--bandwidth", "10M")
	d := w.links("site",
		"hub-1 hub-3 10000000 ", "hub-1 switch-1 1000000000 ", "hub-2 switch-1 2500000000 ",
		"hub-3 hub-1 10000000 ", "switch-1 hub-1 1000000000 ", "switch-1 hub-2 2500000000 ")
	require.Equal(t, []topologies.Node{
		{Name: "hub-1"},
		{Name: "hub-2"},
		{Name: "hub-3", MACAddress: "00:11:22:33:44:66"},
		{Name: "switch-1", Type: "NETWORK", IPAddress: "192.0.2.9", MACAddress: "00:11:22:33:44:55"},
	}, d.Nodes)
	require.Equal(t, "site", d.NetworkImplementation)

	require.NoError(t, os.WriteFile(other, []byte(`{"lldp": {}}`), 0o600)) // a cable is gone
	w.links("site", "hub-1 hub-3 10000000 ", "hub-1 switch-1 1000000000 ", "hub-3 hub-1 10000000 ", "switch-1 hub-1 1000000000 ")
}

// TestLldpdIsAsked: without a file, lldpcli of the node is, and without a controller the document is printed.
func TestLldpdIsAsked(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "lldpcli")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n[ \"$*\" = '-f json show neighbors' ] && cat <<'E'\n"+found+"\nE\n"), 0o700))
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"lldp", "--lldpcli", program, "--node", "here", "--bind", "off"}, func(string) string { return "" }, in, io.Discard)
	}()
	var d topologies.Document
	require.NoError(t, json.NewDecoder(out).Decode(&d))
	require.Equal(t, "lldp-here", d.NetworkImplementation)
	require.Equal(t, []string{"here switch-1 1000000000 ", "switch-1 here 1000000000 "}, written(&d), "nobody says what the other link carries")
	stop()
	require.NoError(t, <-ended)
}

// TestAControllerThatIsAwayIsToldLater: it is told again with backoff, and once.
func TestAControllerThatIsAwayIsToldLater(t *testing.T) {
	t.Parallel()
	var puts atomic.Int32
	controller := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			http.NotFound(w, r)
		case puts.Add(1) == 1:
			http.Error(w, "not now", http.StatusServiceUnavailable)
		default:
			_, _ = io.WriteString(w, "{}")
		}
	}))
	t.Cleanup(controller.Close)
	file := filepath.Join(t.TempDir(), "found.json")
	require.NoError(t, os.WriteFile(file, []byte(found), 0o600))
	o := options{Name: "x", Network: "x", Again: time.Hour}
	o.Controller.URL = controller.URL
	var log bytes.Buffer
	tell, err := newTeller(o, io.Discard, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	tell.sources = []source{neighboursIn("a="+file, "here")}
	require.ErrorContains(t, tell.turn(t.Context()), "not now")
	for range 3 {
		require.NoError(t, tell.turn(t.Context()))
	}
	require.EqualValues(t, 2, puts.Load(), "what it has is not sent again")
	require.Contains(t, log.String(), "links are left out")

	require.NoError(t, os.WriteFile(file, []byte(`{"lldp": {}}`), 0o600))
	require.ErrorContains(t, tell.turn(t.Context()), "no link")
	require.EqualValues(t, 2, puts.Load(), "an empty network is not told")
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	known, err := namesOf("10.0.0.1=hub-1", "")
	require.NoError(t, err)
	d, left := describe("n", known, 0, part{
		nodes: []node{
			{ids: []string{"10.0.0.1"}, name: "same"},
			{ids: []string{"10.0.0.2"}, name: "same"},
			{ids: []string{"10.0.0.3"}, name: "same"},
			{ids: []string{"10.0.0.2:10.1.0.2"}}, // a network with several routers
		},
		links: []link{
			{source: "10.0.0.1", target: "10.0.0.2", bits: 5},
			{source: "10.0.0.1", target: "10.0.0.2", bits: 9, latency: 3},
			{source: "10.0.0.1", target: "10.0.0.2", bits: 9, latency: 2},
			{source: "10.0.0.2", target: "10.0.0.2:10.1.0.2", bits: 7, latency: 4},
			{source: "10.0.0.2:10.1.0.2", target: "10.0.0.2"},
			{source: "10.0.0.3", target: "10.0.0.2"},
			{source: "10.0.0.3", target: "10.0.0.3", bits: 1},
		},
	}, part{nodes: []node{{ids: []string{"HUB-1"}, name: "HUB-1"}}})
	require.Equal(t, 1, left, "nobody says what the link of 10.0.0.3 carries")
	require.Equal(t, []string{"10.0.0.2 10.0.0.2:10.1.0.2 7 4", "10.0.0.2:10.1.0.2 10.0.0.2 7 ", "hub-1 10.0.0.2 9 2"}, written(d))
	require.Equal(t, topologies.Node{Name: "hub-1"}, d.Nodes[len(d.Nodes)-1])
	require.Len(t, d.Nodes, 4)
	text, err := json.Marshal(d)
	require.NoError(t, err)
	_, err = topologies.Parse(text)
	require.NoError(t, err)
}

func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"walk":                                   "neither serve nor lldp",
		"serve":                                  "--speaker and --router-id are required",
		"serve --router-id 10.0.0.1 --speaker x": "is not address[:port]@AS",
		"serve --router-id 10.0.0.1 --speaker x@5":   "speaker:",
		"serve --router-id 10.0.0.1 --speaker ::1@0": "is not address[:port]@AS",
		"lldp --names a":             "is not id=name",
		"lldp --names a=b,A=c":       "a is both b and c",
		"lldp --names-file /nowhere": "names-file:",
		"lldp --bandwidth much":      "bandwidth:",
		"lldp on":                    "is no option",
	} {
		err := run(t.Context(), strings.Fields(args), func(string) string { return "" }, io.Discard, io.Discard)
		require.ErrorContains(t, err, want, args)
	}
	s, err := speakerOf("[2001:db8::1]:1179@4200000000")
	require.NoError(t, err)
	require.Equal(t, speaker{netip.MustParseAddrPort("[2001:db8::1]:1179"), 4200000000}, s)
	s, err = speakerOf("192.0.2.1@65001")
	require.NoError(t, err)
	require.Equal(t, speaker{netip.MustParseAddrPort("192.0.2.1:179"), 65001}, s)
}

func TestRatesOfPorts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"1000BaseTFD - Four-pair Category 5 UTP, full duplex mode": 1e9, "10GigBaseSR - R fibre over 850 nm optics": 10e9,
		"10BaseTHD": 10e6, "2p5GigT": 25e8, "unknown": 0, "": 0,
	} {
		require.Equal(t, want, rate(text), text)
	}
}
