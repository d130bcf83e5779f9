package main

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"
)

// respond answers neighbours until ctx ends.
func (p *probe) respond(ctx context.Context) error {
	var listening net.ListenConfig
	tcp, err := listening.Listen(ctx, "tcp", p.o.Listen)
	if err != nil {
		return err
	}
	udp, err := listening.ListenPacket(ctx, "udp", p.o.Listen)
	if err != nil {
		return errors.Join(err, tcp.Close())
	}
	if c, ok := udp.(*net.UDPConn); ok {
		_ = c.SetReadBuffer(4 << 20) // a train comes at once; less of a buffer loses some of it
	}
	context.AfterFunc(ctx, func() { _, _ = tcp.Close(), udp.Close() })
	go p.reflect(udp)
	go func() {
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			go p.sink(c)
		}
	}()
	return nil
}

// reflect answers packets.
func (p *probe) reflect(udp net.PacketConn) {
	b := make([]byte, 2048)
	for {
		n, from, err := udp.ReadFrom(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n < header || string(b[:4]) != magic {
			continue
		}
		switch b[4] {
		case kindTrain:
			p.trains.count(binary.BigEndian.Uint64(b[8:]), n, time.Now())
			continue
		case kindReport:
			if n < reportSpace {
				continue
			}
			p.trains.report(b[:n])
		case kindEcho:
		default:
			continue
		}
		_, _ = udp.WriteTo(b[:n], from) // what is lost is what is measured
	}
}

// What a sink says before it takes bytes.
const (
	ready = 'r'
	busy  = 'b'
)

// sink takes the bytes of a measurement of throughput and answers how many there were, and how long they took. It takes part in
// one at a time.
func (p *probe) sink(c net.Conn) {
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(p.o.Longest + 10*time.Second))
	select {
	case p.heavy <- struct{}{}:
		defer func() { <-p.heavy }()
	default:
		_, _ = c.Write([]byte{busy})
		return
	}
	if _, err := c.Write([]byte{ready}); err != nil {
		return
	}
	b := make([]byte, 64<<10)
	var total, rest uint64 // rest: after the first read
	var first, last time.Time
	for {
		n, err := c.Read(b)
		if n > 0 {
			last = time.Now()
			if total == 0 {
				first = last
			} else {
				rest += uint64(n)
			}
			total += uint64(n)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				return
			}
			break
		}
	}
	answer := binary.BigEndian.AppendUint64(nil, rest)
	_, _ = c.Write(binary.BigEndian.AppendUint64(answer, uint64(last.Sub(first))))
}
