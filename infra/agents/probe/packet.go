package main

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"sync"
	"time"
)

// A packet is
//
//	magic 4, kind 1, unused 3, session 8, sequence 4, unused 4, time 8
//
// and what fills it up to its size. The one who answers sends back no more than it got, so nobody gains by a forged sender.
const (
	magic  = "LPB1"
	header = 32

	kindEcho   = 1 // is sent back as it is
	kindTrain  = 2 // is counted
	kindReport = 3 // is answered with what was counted: packets, bytes, nanoseconds from the first to the last
)

// trainSize is the payload of a packet of a train; on the wire it has 42 bytes more, for Ethernet, IP and UDP.
const (
	trainSize = 1400
	onTheWire = trainSize + 42
)

func packet(kind byte, session uint64, sequence uint32, size int) []byte {
	b := make([]byte, max(size, header))
	copy(b, magic)
	b[4] = kind
	binary.BigEndian.PutUint64(b[8:], session)
	binary.BigEndian.PutUint32(b[16:], sequence)
	return b
}

// isPacket reports whether it is one of that kind and session.
func isPacket(b []byte, kind byte, session uint64) bool {
	return len(b) >= header && string(b[:4]) == magic && b[4] == kind && binary.BigEndian.Uint64(b[8:]) == session
}

func newSession() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return binary.BigEndian.Uint64(b[:])
}

// trains counts what came of the trains of neighbours. One that is not asked about is forgotten.
type trains struct {
	mu  sync.Mutex
	all map[uint64]*train
}

type train struct {
	packets     uint32
	bytes       uint64
	first, last time.Time
}

const (
	mostTrains  = 64
	trainLasts  = 10 * time.Second
	reportSpace = header + 24
)

func newTrains() *trains { return &trains{all: map[uint64]*train{}} }

func (t *trains) count(session uint64, size int, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.all[session]
	if one == nil {
		for id, old := range t.all {
			if at.Sub(old.last) > trainLasts {
				delete(t.all, id)
			}
		}
		if len(t.all) >= mostTrains {
			return
		}
		one = &train{first: at}
		t.all[session] = one
	}
	one.packets, one.bytes, one.last = one.packets+1, one.bytes+uint64(size), at
}

// report writes what was counted into a request for it.
func (t *trains) report(request []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.all[binary.BigEndian.Uint64(request[8:])]
	if one == nil {
		one = &train{}
	}
	binary.BigEndian.PutUint64(request[header:], uint64(one.packets))
	binary.BigEndian.PutUint64(request[header+8:], one.bytes)
	binary.BigEndian.PutUint64(request[header+16:], uint64(one.last.Sub(one.first)))
}

var errNoReport = errors.New("the neighbour did not say what it got of the train")

// bandwidth reads a report: the gaps between the packets of a train are as long as the narrowest link takes for one of them.
func bandwidth(report []byte) (kbps float64, err error) {
	packets := binary.BigEndian.Uint64(report[header:])
	took := time.Duration(binary.BigEndian.Uint64(report[header+16:]))
	if packets < 2 || took <= 0 {
		return 0, errNoReport
	}
	return float64(packets-1) * onTheWire * 8 / took.Seconds() / 1000, nil
}
