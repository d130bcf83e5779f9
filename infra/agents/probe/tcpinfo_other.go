//go:build !linux

package main

import "net"

// retransmissions are known on Linux only.
func retransmissions(*net.TCPConn) *float64 { return nil }
