// Package relay passes TCP connections on, for tests that lead to something at another address, or hear what is said.
package relay

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Open listens at a host of this machine and passes connections on to an address, host:port, until the test ends. What goes over
// them in either direction is written to heard too, if it is not nil; it must be safe for concurrent use.
func Open(t testing.TB, host, to string, heard io.Writer) net.Addr {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	require.NoError(t, err)
	if heard == nil {
		heard = io.Discard
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	pass := func(from, to net.Conn) {
		all.Go(func() {
			_, _ = io.Copy(io.MultiWriter(to, heard), from) // either end may be gone at any time
			_ = to.Close()
		})
	}
	all.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			there, err := (&net.Dialer{}).Dial("tcp", to)
			if err != nil {
				_ = from.Close()
				continue
			}
			mu.Lock()
			open = append(open, from, there)
			mu.Unlock()
			pass(from, there)
			pass(there, from)
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return l.Addr()
}
