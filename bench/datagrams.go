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

// datagramFlows is how many clients send datagrams.
const datagramFlows = 16

// datagramLoad is what clients send.
type datagramLoad struct {
	bytes int
	// window is how many one client sends before it waits for answers.
	window int
	// trains says that clients and the backend give the kernel a window as one message, and take them like that, as
	// programs for QUIC do.
	trains bool
}

func (l datagramLoad) String() string {
	text := thousands(float64(l.bytes)) + " bytes"
	if l.trains {
		text += " in trains"
	}
	return text
}

// datagramLoads have windows that fit into the buffer which the kernel gives a socket that asks for none, all of them
// together. It is 208 KiB, and a small datagram takes 1 KiB of it and a large one 2.25.
var datagramLoads = []datagramLoad{{64, 12, false}, {1400, 5, false}, {64, 12, true}, {1400, 5, true}}

// datagramBuffer is what our own sockets ask for.
const datagramBuffer = 1 << 20

// lostAfter is after how long without an answer what is under way is lost.
const lostAfter = 200 * time.Millisecond

// datagrams is a number of UDP clients that each keep a window of datagrams under way, which come back. One goroutine
// is all of them and the backend, and asks each in turn for what it has, so that they take no more of the processors
// than they have to.
type datagrams struct {
	datagramLoad

	address string
	// backend is nil where somebody else answers.
	backend  *streamBackend
	flows    int
	warmUp   time.Duration
	duration time.Duration
}

// echoed is what came of it.
type echoed struct {
	// perSecond is how many came back; perProcessor is the same in a second of the proxy's processor time. It is zero
	// without a proxy.
	perSecond, perProcessor float64
	lost                    int
}

// run sends them through a proxy, which is nil where there is none. What comes back too late, or is not what was sent,
// does not count.
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

// exchange counts what came back after begin.
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
			// They are on their way.
			<-time.After(restTime)
		}
	}
	for i := range flows {
		result.lost += flows[i].lost
	}
	result.perSecond = float64(came) / d.duration.Seconds()
	return nil
}

// restTime is for how long nobody is asked when nobody had anything.
const restTime = 20 * time.Microsecond

// turn asks everybody once, and returns how many datagrams came back.
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
	// out is a window of datagrams, and in is room for as many.
	out, in []ipv4.Message
	// train is the window as one message, and control says where to cut it. They are nil where it is not sent as one.
	train   [][]byte
	control []byte
	// number is that of the newest datagram, oldest that of the first one that was not given up, and before comes
	// before all of them, and after those of all clients that have ended.
	number, oldest, before uint64
	underWay               int
	lost                   int
	// heard is when something came back.
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

// turn takes what came back, and returns how many these are. When nothing comes any more, those under way are lost, and
// count no more if they come late.
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

// fill sends as many as there is room for in the window, each with a number.
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

// receive waits for nothing.
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

// isOurs says whether a datagram is one of this client. What another one of the same port was sent may come late.
func (f *flow) isOurs(datagram []byte) bool {
	if len(datagram) < 8 {
		return false
	}
	number := binary.BigEndian.Uint64(datagram)
	return number > f.before && number <= f.number
}

// readSome returns zero when nothing is there.
func readSome(socket *ipv4.PacketConn, into []ipv4.Message) (int, error) {
	n, err := socket.ReadBatch(into, syscall.MSG_DONTWAIT)
	if errors.Is(err, syscall.EAGAIN) {
		return 0, nil
	}
	return n, err
}
