// Package loopback leads names below localhost to this machine, and finds free ports on it.
package loopback

import (
	"context"
	"fmt"
	"math/rand/v2"
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

// Free returns a TCP address of the loopback at which nobody listens. It is not held until the caller listens there, so
// it lies below the ports that systems give to whoever connects without naming one (from 32768 on in Linux, from 49152
// elsewhere): there, a connection of any other process could take it meanwhile.
func Free(ctx context.Context) (netip.AddrPort, error) {
	const first, end, tries = 15000, 32768, 100
	var err error
	for range tries {
		address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(first+rand.IntN(end-first)))
		var l net.Listener
		if l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", address.String()); err == nil {
			return address, l.Close()
		}
	}
	return netip.AddrPort{}, fmt.Errorf("no free port after %d tries: %w", tries, err)
}
