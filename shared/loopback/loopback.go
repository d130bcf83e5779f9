// Package loopback finds room on this machine for programs that have to be told where to listen.
package loopback

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

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
