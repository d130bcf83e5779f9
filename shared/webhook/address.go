package webhook

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
)

// refusedNets are the special-purpose networks in IANA's registries that are not globally reachable, and those whose
// IPv6 addresses contain an IPv4 address, which hide the real destination.
var refusedNets = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
	"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32",
	"::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16",
	"3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
)

func prefixes(list ...string) []netip.Prefix {
	nets := make([]netip.Prefix, len(list))
	for i, text := range list {
		nets[i] = netip.MustParsePrefix(text)
	}
	return nets
}

// public reports whether an address may be called without being allowed explicitly.
func public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Zone() != "" {
		return false
	}
	for _, n := range refusedNets {
		if n.Contains(a) {
			return false
		}
	}
	return a.Is4() || netip.MustParsePrefix("2000::/3").Contains(a)
}

// Allowed are the addresses, networks and host names that may be called although they are not public.
type Allowed struct {
	nets  []netip.Prefix
	hosts map[string]bool
}

// newAllowed parses a list such as 10.1.0.0/16, 192.168.1.7 or jobmanager.littoral.svc.
func newAllowed(list []string) (Allowed, error) {
	a := Allowed{hosts: map[string]bool{}}
	for _, text := range list {
		text = strings.ToLower(strings.TrimSpace(text))
		if text == "" {
			continue
		}
		if p, err := netip.ParsePrefix(text); err == nil {
			a.nets = append(a.nets, p)
			continue
		}
		if addr, err := netip.ParseAddr(text); err == nil {
			a.nets = append(a.nets, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		if strings.ContainsAny(text, "/:* ") {
			return a, fmt.Errorf("WEBHOOK_ALLOW: %q is no address, network or host name", text)
		}
		a.hosts[text] = true
	}
	return a, nil
}

func (a Allowed) host(name string) bool {
	return a.hosts[strings.ToLower(strings.TrimSuffix(name, "."))]
}

func (a Allowed) addr(addr netip.Addr) bool {
	addr = addr.Unmap()
	for _, n := range a.nets {
		if n.Contains(addr) {
			return true
		}
	}
	return public(addr)
}

// control refuses a connection by the resolved address, which nothing can change any more.
func (a Allowed) control(_, address string, _ syscall.RawConn) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s is no address", errRefused, address)
	}
	if !a.addr(addr.Addr()) {
		return errRefused
	}
	return nil
}

// CheckURL returns what is wrong with a user's URL, as far as it can be found without DNS. It does not refuse
// addresses, since a setting may allow them.
func CheckURL(text string) error {
	_, err := parse(text)
	return err
}

func parse(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("is no URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("must be an http or https URL")
	case u.Hostname() == "" || u.Opaque != "":
		return nil, fmt.Errorf("names no host")
	case u.User != nil:
		return nil, fmt.Errorf("must not carry a user or password")
	case strings.ContainsAny(u.Hostname(), "%\\ \t\r\n\x00@#?"):
		return nil, fmt.Errorf("names no host")
	}
	if port := u.Port(); port != "" {
		if n, err := net.LookupPort("tcp", port); err != nil || n == 0 {
			return nil, fmt.Errorf("names no port")
		}
	}
	return u, nil
}
