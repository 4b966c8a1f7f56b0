package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
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
	// trains says that clients and the backend give the kernel a window as one message, and take them like that, as programs
	// for QUIC do.
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

// datagrams is a number of UDP clients that each keep a window of datagrams under way, which come back.
type datagrams struct {
	datagramLoad

	address  string
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

// run sends them through a proxy, which is nil where there is none. What comes back too late, or is not what was sent, does
// not count.
func (d datagrams) run(ctx context.Context, proxy *process) (result echoed, err error) {
	together, err := keepApart(proxy)
	if err != nil {
		return echoed{}, err
	}
	defer func() { err = errors.Join(err, together()) }()
	begin := time.Now().Add(d.warmUp)
	limited, cancel := context.WithDeadline(ctx, begin.Add(d.duration))
	defer cancel()
	flows, errs := make([]flow, d.flows), make([]error, d.flows)
	var group sync.WaitGroup
	for i := range flows {
		group.Go(func() {
			if errs[i] = flows[i].run(limited, d, begin); errs[i] != nil {
				cancel()
			}
		})
	}
	wait(limited, begin)
	spent, errBefore := proxy.processorTime()
	group.Wait()
	after, errAfter := proxy.processorTime()
	return d.sum(flows, after-spent), errors.Join(append(errs, errBefore, errAfter, ctx.Err())...)
}

func (d datagrams) sum(flows []flow, spent time.Duration) echoed {
	total, came := echoed{}, 0.0
	for _, f := range flows {
		came += float64(f.came)
		total.lost += f.lost
	}
	total.perSecond = came / d.duration.Seconds()
	if spent > 0 {
		total.perProcessor = came / spent.Seconds()
	}
	return total
}

// flow is one client.
type flow struct {
	socket *ipv4.PacketConn
	conn   net.Conn
	// out is a window of datagrams, and in is room for as many.
	out, in []ipv4.Message
	// train is the window as one message, and control says where to cut it. They are nil where it is not sent as one.
	train   [][]byte
	control []byte
	// number is that of the newest datagram, and oldest that of the first one that was not given up.
	number, oldest uint64
	underWay       int
	came, lost     int
}

func (f *flow) run(ctx context.Context, d datagrams, begin time.Time) error {
	conn, err := net.Dial("udp4", d.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	udp := conn.(*net.UDPConn)
	if err := errors.Join(udp.SetReadBuffer(datagramBuffer), takeTrains(udp, d.trains)); err != nil {
		return err
	}
	f.conn, f.socket = conn, ipv4.NewPacketConn(udp)
	f.out, f.in = newMessages(d.window, d.bytes, 0), newMessages(d.window, longestTrain, trainControlRoom)
	if d.trains {
		f.control = trainControl(d.bytes)
		for _, each := range f.out {
			f.train = append(f.train, each.Buffers[0])
		}
	}
	for ctx.Err() == nil {
		if err := f.fill(); err != nil {
			return err
		}
		came, err := f.receive()
		if err != nil {
			return err
		}
		if time.Now().After(begin) && ctx.Err() == nil {
			f.came += came
		}
	}
	return nil
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

// receive returns how many came back. When none does, those under way are lost, and count no more if they come late.
func (f *flow) receive() (int, error) {
	if err := f.conn.SetReadDeadline(time.Now().Add(lostAfter)); err != nil {
		return 0, err
	}
	n, err := f.socket.ReadBatch(f.in, 0)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		f.lost += f.underWay
		f.underWay, f.oldest = 0, f.number+1
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	came, size := 0, len(f.out[0].Buffers[0])
	for _, m := range f.in[:n] {
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
