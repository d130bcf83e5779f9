package sinktest

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Wire passes connections on to an address until it is cut.
type Wire struct {
	Address string

	to    string
	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

// NewWire returns a wire to the address. It ends with the test.
func NewWire(t *testing.T, to string) *Wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &Wire{Address: listener.Addr().String(), to: to, conns: map[net.Conn]bool{}}
	t.Cleanup(func() {
		_ = listener.Close()
		w.Cut()
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go w.pass(conn)
		}
	}()
	return w
}

func (w *Wire) pass(conn net.Conn) {
	defer conn.Close()
	far, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer far.Close()
	if !w.add(conn) {
		return
	}
	go func() {
		_, _ = io.Copy(far, conn)
		_ = far.Close()
	}()
	_, _ = io.Copy(conn, far)
}

func (w *Wire) add(conn net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.cut {
		w.conns[conn] = true
	}
	return !w.cut
}

// Cut ends all connections, and each new one at once.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for conn := range w.conns {
		_ = conn.Close()
	}
	w.conns = map[net.Conn]bool{}
}

// Heal lets connections through again.
func (w *Wire) Heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
}
