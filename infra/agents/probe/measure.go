package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"time"
)

// window has the last round trips of a neighbour, so that loss and jitter are of more packets than one exchange has.
type window struct {
	trips []time.Duration // -1: lost
}

const longestWindow = 5000

func (w *window) add(trips []time.Duration) {
	w.trips = append(w.trips, trips...)
	if over := len(w.trips) - longestWindow; over > 0 {
		w.trips = slices.Delete(w.trips, 0, over)
	}
}

// figures returns the mean round trip, its standard deviation and the share that was lost; the first two are nil if all was.
func (w *window) figures() (rtt, jitter *float64, loss float64) {
	var sum, squares float64
	n := 0.0
	for _, t := range w.trips {
		if t >= 0 {
			n++
			sum += t.Seconds() * 1000
		}
	}
	loss = 100 * (1 - n/float64(len(w.trips)))
	if n == 0 {
		return nil, nil, loss
	}
	mean := sum / n
	for _, t := range w.trips {
		if t >= 0 {
			squares += (t.Seconds()*1000 - mean) * (t.Seconds()*1000 - mean)
		}
	}
	deviation := math.Sqrt(squares / n)
	return &mean, &deviation, loss
}

// recent is how many round trips count for the round trip and the jitter; loss, which is rare, is of the whole window.
const recent = 5

func (p *probe) dial(ctx context.Context, network string, n neighbour) (net.Conn, error) {
	host, port, err := net.SplitHostPort(n.IP)
	if err != nil { // the usual case: an address alone
		host, port = n.IP, strconv.Itoa(p.o.Port)
	}
	d := net.Dialer{Timeout: 5 * time.Second}
	return d.DialContext(ctx, network, net.JoinHostPort(host, port))
}

// echo measures round trip, jitter and loss.
func (p *probe) echo(ctx context.Context, n neighbour) error {
	c, err := p.dial(ctx, "udp", n)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	trips, err := p.exchange(ctx, c)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.window[n.Name] == nil {
		p.window[n.Name] = &window{}
	}
	all := p.window[n.Name]
	all.add(trips)
	last := window{all.trips[max(0, len(all.trips)-recent*len(trips)):]}
	f := p.of(n.Name)
	_, _, loss := all.figures()
	f.RTT, f.Jitter, _ = last.figures()
	f.Loss = &loss
	return nil
}

// exchange sends echoes and returns how long each took; -1 for those without an answer.
func (p *probe) exchange(ctx context.Context, c net.Conn) ([]time.Duration, error) {
	session := newSession()
	sent, trips := make([]time.Time, p.o.Echoes), slices.Repeat([]time.Duration{-1}, p.o.Echoes)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 2048)
		for got := 0; got < len(trips); {
			k, err := c.Read(b)
			now := time.Now()
			if errors.Is(err, net.ErrClosed) || isTimeout(err) {
				return
			}
			if err != nil || !isPacket(b[:k], kindEcho, session) {
				continue // a neighbour that refuses makes a read fail, and the next may not
			}
			if i := binary.BigEndian.Uint32(b[16:]); int(i) < len(trips) && trips[i] < 0 {
				got++
				trips[i] = now.Sub(start.Add(time.Duration(binary.BigEndian.Uint64(b[24:]))))
			}
		}
	}()
	every := time.NewTicker(p.o.Gap)
	defer every.Stop()
	for i := range sent {
		b := packet(kindEcho, session, uint32(i), 64)
		binary.BigEndian.PutUint64(b[24:], uint64(time.Since(start)))
		_, _ = c.Write(b) // what cannot be sent is lost
		select {
		case <-ctx.Done():
			_ = c.SetReadDeadline(time.Now())
			<-done
			return nil, ctx.Err()
		case <-every.C:
		}
	}
	_ = c.SetReadDeadline(time.Now().Add(p.o.Wait))
	<-done
	return trips, nil
}

// start is what the times in packets count from: clocks of the wall may jump.
var start = time.Now()

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// load measures bandwidth and throughput, one after the other, as soon as both sides are free.
func (p *probe) load(ctx context.Context, n neighbour) error {
	if err := p.spend(p.o.TCPBytes + int64(p.o.Train)*onTheWire); err != nil {
		return err
	}
	for tries := 0; ; tries++ {
		select {
		case p.heavy <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		err := p.both(ctx, n)
		<-p.heavy
		if !errors.Is(err, errBusy) || tries >= 20 {
			return err
		}
		select { // not at the same moment as the one that was in the way
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50*time.Millisecond + rand.N(500*time.Millisecond)):
		}
	}
}

var errBusy = errors.New("the neighbour takes part in another measurement")

// both holds the neighbour by the TCP connection while the train goes as well.
func (p *probe) both(ctx context.Context, n neighbour) error {
	c, err := p.dial(ctx, "tcp", n)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(p.o.Longest + 10*time.Second))
	var said [1]byte
	if _, err := io.ReadFull(c, said[:]); err != nil {
		return fmt.Errorf("wait for the neighbour: %w", err)
	}
	if said[0] == busy {
		return errBusy
	}
	carries, failed := p.train(ctx, n)
	gets, again, err := p.stream(c)
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.of(n.Name)
	if failed == nil {
		f.Bandwidth = &carries
	}
	if err == nil {
		f.Throughput, f.Retransmissions = &gets, again
	}
	return errors.Join(failed, err)
}

// train sends packets as fast as it can and asks how they arrived.
func (p *probe) train(ctx context.Context, n neighbour) (kbps float64, err error) {
	c, err := p.dial(ctx, "udp", n)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	session := newSession()
	b := packet(kindTrain, session, 0, trainSize)
	for range p.o.Train {
		_, _ = c.Write(b) // what cannot be sent does not arrive
	}
	for range 10 { // the train is still on its way, or the question gets lost
		if _, err := c.Write(packet(kindReport, session, 0, reportSpace)); err != nil {
			return 0, err
		}
		_ = c.SetReadDeadline(time.Now().Add(p.o.Wait))
		answer := make([]byte, 2048)
		k, err := c.Read(answer)
		if err == nil && k >= reportSpace && isPacket(answer[:k], kindReport, session) {
			return bandwidth(answer[:k])
		}
	}
	return 0, errNoReport
}

// stream sends the bytes of the budget, for as long as it may, and reads how fast they came.
func (p *probe) stream(c net.Conn) (kbps float64, again *float64, err error) {
	b := make([]byte, 64<<10)
	ends := time.Now().Add(p.o.Longest)
	for left := p.o.TCPBytes; left > 0 && time.Now().Before(ends); {
		k, err := c.Write(b[:min(left, int64(len(b)))])
		if err != nil {
			return 0, nil, fmt.Errorf("send: %w", err)
		}
		left -= int64(k)
	}
	half, ok := c.(*net.TCPConn)
	if !ok {
		return 0, nil, errors.New("the connection is no TCP")
	}
	if err := half.CloseWrite(); err != nil {
		return 0, nil, fmt.Errorf("send: %w", err)
	}
	var answer [16]byte
	if _, err := io.ReadFull(c, answer[:]); err != nil {
		return 0, nil, fmt.Errorf("wait for what arrived: %w", err)
	}
	took := time.Duration(binary.BigEndian.Uint64(answer[8:]))
	if took <= 0 {
		return 0, nil, errors.New("there were too few bytes to measure")
	}
	return float64(binary.BigEndian.Uint64(answer[:])) * 8 / took.Seconds() / 1000, retransmissions(half), nil
}
