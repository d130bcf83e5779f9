package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"github.com/osrg/gobgp/v4/pkg/server"
)

// speaker is who is listened to.
type speaker struct {
	address netip.AddrPort
	as      uint32
}

func speakerOf(text string) (s speaker, err error) {
	address, as, _ := strings.Cut(text, "@")
	number, err := strconv.ParseUint(as, 10, 32)
	if err != nil || number == 0 {
		return s, fmt.Errorf("speaker: %q is not address[:port]@AS", text)
	}
	s.as = uint32(number)
	if s.address, err = netip.ParseAddrPort(address); err == nil {
		return s, nil
	}
	only, err := netip.ParseAddr(strings.Trim(address, "[]"))
	if err != nil {
		return s, fmt.Errorf("speaker: %w", err)
	}
	s.address = netip.AddrPortFrom(only, bgp.BGP_PORT)
	return s, nil
}

// sessions are those with speakers. What these tell is kept by gobgp, which forgets what is withdrawn, and all of a speaker that is lost.
type sessions struct {
	server *server.BgpServer
	settle time.Duration
}

// listen begins the sessions. changed is called when there may be news.
func listen(ctx context.Context, o options, log *slog.Logger, changed func()) (*sessions, error) {
	if len(o.Speakers) == 0 || o.RouterID == "" {
		return nil, errors.New("--speaker and --router-id are required")
	}
	password := ""
	if o.Password != "" {
		text, err := os.ReadFile(o.Password)
		if err != nil {
			return nil, fmt.Errorf("password-file: %w", err)
		}
		password = strings.TrimSpace(string(text))
	}
	global := &api.Global{Asn: uint32(o.AS), RouterId: o.RouterID, ListenPort: -1}
	if o.Listen != "" {
		host, port, err := net.SplitHostPort(o.Listen)
		if err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
		if global.ListenPort = int32(number); host != "" {
			global.ListenAddresses = []string{host}
		}
	}
	s := &sessions{server.NewBgpServer(server.LoggerOption(log, &slog.LevelVar{})), o.Settle}
	go s.server.Serve()
	if err := s.server.StartBgp(ctx, &api.StartBgpRequest{Global: global}); err != nil {
		return nil, fmt.Errorf("begin to speak BGP: %w", err)
	}
	news := server.WatchEventMessageCallbacks{
		OnBestPath:   func([]*apiutil.Path, time.Time) { changed() },
		OnPathEor:    func(*apiutil.Path, time.Time) { changed() },
		OnPeerUpdate: func(*apiutil.WatchEventMessage_PeerEvent, time.Time) { changed() },
	}
	if err := s.server.WatchEvent(ctx, news, server.WatchBestPath(false), server.WatchEor(false), server.WatchPeer()); err != nil {
		s.stop()
		return nil, fmt.Errorf("watch: %w", err)
	}
	for _, text := range o.Speakers {
		who, err := speakerOf(text)
		if err == nil {
			err = s.server.AddPeer(ctx, &api.AddPeerRequest{Peer: who.peer(uint32(o.AS), password)})
		}
		if err != nil {
			s.stop()
			return nil, err
		}
	}
	return s, nil
}

func (s *sessions) stop() { s.server.Stop() }

// linkState is the family of BGP-LS.
var linkState = &api.Family{Afi: api.Family_AFI_LS, Safi: api.Family_SAFI_LS}

// restart is how long what a speaker has told is kept while it restarts, in seconds.
const restart = 120

// peer is the session: BGP-LS alone, in which nothing is announced.
func (s speaker) peer(as uint32, password string) *api.Peer {
	p := &api.Peer{
		Conf:            &api.PeerConf{NeighborAddress: s.address.Addr().String(), PeerAsn: s.as, LocalAsn: as, AuthPassword: password},
		Transport:       &api.Transport{RemotePort: uint32(s.address.Port())},
		Timers:          &api.Timers{Config: &api.TimersConfig{ConnectRetry: 10}},
		GracefulRestart: &api.GracefulRestart{Enabled: true, RestartTime: restart},
		ApplyPolicy: &api.ApplyPolicy{
			ImportPolicy: &api.PolicyAssignment{DefaultAction: api.RouteAction_ROUTE_ACTION_ACCEPT},
			ExportPolicy: &api.PolicyAssignment{DefaultAction: api.RouteAction_ROUTE_ACTION_REJECT},
		},
		AfiSafis: []*api.AfiSafi{{
			Config:            &api.AfiSafiConfig{Family: linkState, Enabled: true},
			MpGracefulRestart: &api.MpGracefulRestart{Config: &api.MpGracefulRestartConfig{Enabled: true}},
		}},
	}
	if s.as != as { // who tells of a whole network is seldom next to us
		p.EbgpMultihop = &api.EbgpMultihop{Enabled: true, MultihopTtl: 255}
	}
	return p
}

// errNotHeard is what there is to say of a network of which no speaker has told all.
var errNotHeard = errors.New("no session with a speaker that has told all it knows")

// read returns the network. The error is errNotHeard while no speaker is there: what it told before is then as good as anything.
func (s *sessions) read(ctx context.Context) (p part, err error) {
	if err := s.anyHeard(ctx); err != nil {
		return p, err
	}
	if p, err = s.rib(); err != nil {
		return p, err
	}
	// A session that ends is marked so before what it told is forgotten. So if anything was forgotten while it was read, that is known now.
	return p, s.anyHeard(ctx)
}

func (s *sessions) anyHeard(ctx context.Context) error {
	heard := false
	err := s.server.ListPeer(ctx, &api.ListPeerRequest{}, func(p *api.Peer) { heard = heard || s.heard(p, time.Now()) })
	if err == nil && !heard {
		err = errNotHeard
	}
	return err
}

// heard reports whether a speaker has told all that it knows.
func (s *sessions) heard(p *api.Peer, now time.Time) bool {
	if p.GetState().GetSessionState() != api.PeerState_SESSION_STATE_ESTABLISHED {
		return false
	}
	for _, family := range p.GetAfiSafis() {
		if family.GetMpGracefulRestart().GetState().GetEndOfRibReceived() {
			return true
		}
	}
	up := p.GetTimers().GetState().GetUptime()
	return up != nil && now.Sub(up.AsTime()) >= s.settle
}

// rib reads what gobgp has.
func (s *sessions) rib() (p part, err error) {
	nodes, links := map[string]*node{}, []link(nil)
	err = s.server.ListPath(apiutil.ListPathRequest{TableType: api.TableType_TABLE_TYPE_GLOBAL, Family: bgp.RF_LS},
		func(prefix bgp.NLRI, paths []*apiutil.Path) {
			said, ok := prefix.(*bgp.LsAddrPrefix)
			if !ok || len(paths) == 0 {
				return
			}
			about := attributes(paths[0]) // the best one
			switch nlri := said.NLRI.(type) {
			case *bgp.LsNodeNLRI:
				addNode(nodes, nlri, &about.Node)
			case *bgp.LsLinkNLRI:
				if l, ok := linkOf(nlri, &about.Link); ok {
					links = append(links, l)
				}
			}
		})
	for _, n := range nodes {
		slices.Sort(n.ids[1:])
		p.nodes = append(p.nodes, *n)
	}
	p.links = links
	return p, err
}

func attributes(p *apiutil.Path) *bgp.LsAttribute {
	for _, a := range p.Attrs {
		if ls, ok := a.(*bgp.PathAttributeLs); ok {
			return ls.Extract()
		}
	}
	return &bgp.LsAttribute{}
}

// addNode adds what is said of a node. Several levels and areas tell of the same router, which has one id in all of them.
func addNode(nodes map[string]*node, nlri *bgp.LsNodeNLRI, about *bgp.LsAttributeNode) {
	id, more := idOf(nlri.LocalNodeDesc)
	if id == "" {
		return
	}
	n := nodes[id]
	if n == nil {
		n = &node{ids: []string{id}}
		nodes[id] = n
	}
	n.ids = append(n.ids, more...)
	if about.Name != nil {
		n.name = one(n.name, *about.Name)
	}
	for _, address := range []*netip.Addr{about.LocalRouterID, about.LocalRouterIDv6} {
		if address != nil && address.IsValid() {
			n.ids = append(n.ids, address.String())
			n.ip = one(n.ip, address.String())
		}
	}
}

// one of two names or addresses, the same whichever comes first.
func one(a, b string) string {
	if a == "" || b != "" && b < a {
		return b
	}
	return a
}

// idOf returns the id of a router: of its own protocol if it has one, else of BGP, which is another way to find it otherwise.
func idOf(tlv bgp.LsTLVInterface) (id string, more []string) {
	descriptor, ok := tlv.(*bgp.LsTLVNodeDescriptor)
	if !ok {
		return "", nil
	}
	d := descriptor.Extract()
	if d.BGPRouterID.IsValid() && !d.BGPRouterID.IsUnspecified() {
		if d.IGPRouterID == "" {
			return d.BGPRouterID.String(), nil
		}
		more = append(more, d.BGPRouterID.String())
	}
	return d.IGPRouterID, more
}

// linkOf returns the link in the direction in which it is told. Bandwidth comes in bytes and delay in microseconds; of delays the
// measured one counts, or the shortest of the two that bound it.
func linkOf(nlri *bgp.LsLinkNLRI, about *bgp.LsAttributeLink) (l link, ok bool) {
	l.source, _ = idOf(nlri.LocalNodeDesc)
	l.target, _ = idOf(nlri.RemoteNodeDesc)
	if l.source == "" || l.target == "" {
		return l, false
	}
	if about.Bandwidth != nil {
		l.bits = int64(min(float64(*about.Bandwidth)*8, 1e18))
	}
	micros := func(v uint32) time.Duration { return time.Duration(v) * time.Microsecond }
	switch {
	case about.UnidirectionalLinkDelay != nil:
		l.latency = micros(about.UnidirectionalLinkDelay.Delay)
	case about.MinMaxUnidirectionalLinkDelay != nil:
		l.latency = micros(about.MinMaxUnidirectionalLinkDelay.MinDelay)
	}
	l.more = map[string]string{}
	if about.Name != nil {
		l.more["name"] = *about.Name
	}
	if about.UnidirectionalDelayVariation != nil {
		l.more["delayVariationNanos"] = strconv.FormatInt(micros(*about.UnidirectionalDelayVariation).Nanoseconds(), 10)
	}
	if about.IGPMetric != nil {
		l.more["igpMetric"] = strconv.FormatUint(uint64(*about.IGPMetric), 10)
	}
	if about.DefaultTEMetric != nil {
		l.more["teMetric"] = strconv.FormatUint(uint64(*about.DefaultTEMetric), 10)
	}
	return l, true
}
