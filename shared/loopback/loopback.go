// Package loopback leads names below localhost to this machine, and finds free ports on it.
package loopback

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// Address returns the "host:port" to dial: a name below localhost is this machine, whatever a name server says
// (RFC 6761, section 6.3), as it is to curl and to browsers. Anything else stays as it is.
func Address(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || !strings.HasSuffix(strings.ToLower(strings.TrimSuffix(host, ".")), ".localhost") {
		return address
	}
	return net.JoinHostPort("localhost", port)
}

// Free returns a TCP address of the loopback at which nobody listens. It is not held: in principle another process can
// take it before the caller does.
func Free(ctx context.Context) (netip.AddrPort, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return netip.AddrPort{}, err
	}
	defer func() { _ = l.Close() }()
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("unexpected address %s", l.Addr())
	}
	return address.AddrPort(), nil
}
