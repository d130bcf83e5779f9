package main

import (
	"net"

	"golang.org/x/sys/unix"
)

// retransmissions returns the share of segments that were sent again, in percent; nil if the kernel does not say.
func retransmissions(c *net.TCPConn) *float64 {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	var share *float64
	_ = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil && info.Data_segs_out > 0 {
			v := 100 * float64(info.Total_retrans) / float64(info.Data_segs_out)
			share = &v
		}
	})
	return share
}
