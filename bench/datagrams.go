package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
)

// datagramFlows is the number of clients that send datagrams.
const datagramFlows = 16

// datagramLoad describes the datagrams that clients send.
type datagramLoad struct {
	bytes int
	// window is the number of datagrams that a client sends before it waits for responses.
	window int
	// trains reports whether clients and the backend send and receive a whole window in one call, like QUIC
	// implementations.
	trains bool
}

func (l datagramLoad) String() string {
	text := thousands(float64(l.bytes)) + " bytes"
	if l.trains {
		text += " in trains"
	}
	return text
}

// The windows of all clients together fit into the default buffer of a socket. Its size is 208 KiB; a small datagram
// needs 1 KiB of it, and a large one needs 2.25 KiB.
var datagramLoads = []datagramLoad{{64, 12, false}, {1400, 5, false}, {64, 12, true}, {1400, 5, true}}

// datagramBuffer is the size of the buffers of our own sockets.
const datagramBuffer = 1 << 20

// lostAfter is the time without any response after which the datagrams in transit are considered lost.
const lostAfter = 200 * time.Millisecond

// datagrams is a load of UDP clients that each keep a window of datagrams in transit. The backend echoes the datagrams.
// One goroutine runs the backend and polls all clients in turn, so that the load uses little processor time.
type datagrams struct {
	datagramLoad

	address string
	// backend is nil if another process responds.
	backend  *streamBackend
	flows    int
	warmUp   time.Duration
	duration time.Duration
}

// echoed is the result of a load of datagrams.
type echoed struct {
	// perSecond is the number of datagrams that came back per second. perProcessor is the number per second of the
	// proxy's processor time; it is 0 without a proxy.
	perSecond, perProcessor float64
	lost                    int
}

// run sends datagrams through a proxy. proxy is nil if there is none. Datagrams that come back late or changed are not
// counted.
func (d datagrams) run(ctx context.Context, proxy *process) (result echoed, err error) {
	together, err := keepApart(proxy)
	if err != nil {
		return echoed{}, err
	}
	defer func() { err = errors.Join(err, together()) }()
	begin := time.Now().Add(d.warmUp)
	limited, cancel := context.WithDeadline(ctx, begin.Add(d.duration))
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- d.exchange(limited, begin, &result)
	}()
	wait(limited, begin)
	before, errBefore := proxy.processorTime()
	errExchange := <-ended
	after, errAfter := proxy.processorTime()
	came := result.perSecond * d.duration.Seconds()
	if spent := after - before; spent > 0 {
		result.perProcessor = came / spent.Seconds()
	}
	return result, errors.Join(errExchange, errBefore, errAfter, ctx.Err())
}

// exchange counts the datagrams that come back after begin.
func (d datagrams) exchange(ctx context.Context, begin time.Time, result *echoed) error {
	flows := make([]flow, d.flows)
	for i := range flows {
		if err := flows[i].open(&d); err != nil {
			return err
		}
		defer flows[i].conn.Close()
	}
	came := 0
	for now := time.Now(); ctx.Err() == nil; now = time.Now() {
		n, err := d.turn(flows, now)
		if err != nil {
			return err
		}
		if now.After(begin) {
			came += n
		}
		if n == 0 {
			// All datagrams are in transit. Leave the processors to the proxy.
			<-time.After(restTime)
		}
	}
	for i := range flows {
		result.lost += flows[i].lost
	}
	result.perSecond = float64(came) / d.duration.Seconds()
	return nil
}

// restTime is the pause after a poll of all clients in which nothing was received.
const restTime = 20 * time.Microsecond

// turn polls every client once, and returns the number of datagrams that came back.
func (d datagrams) turn(flows []flow, now time.Time) (came int, err error) {
	for i := range flows {
		n, err := flows[i].turn(now)
		if err != nil {
			return 0, err
		}
		came += n
	}
	if d.backend != nil {
		err = d.backend.echo()
	}
	return came, err
}

// flow is one client.
type flow struct {
	socket *ipv4.PacketConn
	conn   *net.UDPConn
	// out is a window of datagrams. in is the buffer for the same number of datagrams.
	out, in []ipv4.Message
	// train is the window as one message, and control tells the kernel where to split it. Both are nil if the datagrams
	// are sent separately.
	train   [][]byte
	control []byte
	// number is the number of the newest datagram. oldest is the number of the first datagram that was not given up.
	// Numbers up to before belong to earlier clients.
	number, oldest, before uint64
	underWay               int
	lost                   int
	// heard is the time of the last received datagram.
	heard time.Time
}

func (f *flow) open(d *datagrams) error {
	conn, err := net.Dial("udp4", d.address)
	if err != nil {
		return err
	}
	f.conn = conn.(*net.UDPConn)
	if err := errors.Join(f.conn.SetReadBuffer(datagramBuffer), takeTrains(f.conn, d.trains)); err != nil {
		return errors.Join(err, f.conn.Close())
	}
	f.socket, f.heard = ipv4.NewPacketConn(f.conn), time.Now()
	f.before = uint64(f.heard.UnixNano())
	f.number, f.oldest = f.before, f.before+1
	f.out, f.in = newMessages(d.window, d.bytes, 0), newMessages(d.window, longestTrain, trainControlRoom)
	if d.trains {
		f.control = trainControl(d.bytes)
		for _, each := range f.out {
			f.train = append(f.train, each.Buffers[0])
		}
	}
	return nil
}

// turn receives datagrams and returns their number. If nothing has come for lostAfter, it counts the datagrams in
// transit as lost, and ignores them if they come later.
func (f *flow) turn(now time.Time) (came int, err error) {
	if came, err = f.receive(); err != nil {
		return 0, err
	}
	switch {
	case came > 0:
		f.heard = now
	case now.Sub(f.heard) > lostAfter:
		f.lost += f.underWay
		f.underWay, f.oldest, f.heard = 0, f.number+1, now
	}
	return came, f.fill()
}

// fill sends datagrams until the window is full. Each datagram contains its number.
func (f *flow) fill() error {
	next := f.out[:len(f.out)-f.underWay]
	for i := range next {
		f.number++
		binary.BigEndian.PutUint64(next[i].Buffers[0], f.number)
	}
	f.underWay = len(f.out)
	if f.train != nil && len(next) > 0 {
		next = []ipv4.Message{{Buffers: f.train[:len(next)], OOB: f.control}}
	}
	return writeAll(f.socket, next)
}

// receive reads the datagrams that have arrived. It does not wait.
func (f *flow) receive() (came int, err error) {
	n, err := readSome(f.socket, f.in)
	if err != nil {
		return 0, err
	}
	size := len(f.out[0].Buffers[0])
	for _, m := range f.in[:n] {
		if !f.isOurs(m.Buffers[0][:m.N]) {
			continue
		}
		if each := cmp.Or(trainSize(m.OOB[:m.NN]), m.N); each != size || m.N%size != 0 {
			return 0, fmt.Errorf("datagrams of %d bytes came back as %d bytes in pieces of %d", size, m.N, each)
		}
		for at := 0; at < m.N; at += size {
			if binary.BigEndian.Uint64(m.Buffers[0][at:]) >= f.oldest {
				came++
			}
		}
	}
	f.underWay -= came
	return came, nil
}

// isOurs reports whether a datagram belongs to this client. A late datagram may belong to an earlier client with the
// same port.
func (f *flow) isOurs(datagram []byte) bool {
	if len(datagram) < 8 {
		return false
	}
	number := binary.BigEndian.Uint64(datagram)
	return number > f.before && number <= f.number
}

// readSome returns 0 if no datagram has arrived.
func readSome(socket *ipv4.PacketConn, into []ipv4.Message) (int, error) {
	n, err := socket.ReadBatch(into, syscall.MSG_DONTWAIT)
	if errors.Is(err, syscall.EAGAIN) {
		return 0, nil
	}
	return n, err
}
