package featuretests

import (
	"bufio"
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/net/http2"
)

// flood2 is an attack on one HTTP/2 connection.
type flood2 struct {
	// begin is called first, if it is not nil.
	begin func(a *attacker2) error
	// again is called times times. 0 means until the server closes the connection, which it must.
	again func(a *attacker2, i int) error
	times int
	// deaf means that the client does not read what the server sends.
	deaf bool
	// large is the number of requests for /large that the endpoint must receive before the test measures the process.
	large int64
}

// attacker2 is an attacking HTTP/2 client. Its output is buffered until the buffer is full, or out.Flush is called.
type attacker2 struct {
	*stream2
	conn *dialed
	out  *bufio.Writer
}

// openStreams is the number of streams that an attacker opens at a time, unless it tries to open too many.
const openStreams = 100

// plainHead is a head that does not use the dynamic table: GET, https, a.example and the path /.
const plainHead = "\x82\x87\x84\x01\x09a.example"

// floodsOfHTTP2 are named after the advisories and the vulnerabilities of several vendors.
var floodsOfHTTP2 = map[string]flood2{
	"CVE-2019-9511 data dribble: windows of one byte": {
		begin: func(a *attacker2) error {
			err := a.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			for range openStreams {
				err = errors.Join(err, a.ask("/large", true))
			}
			return err
		},
		again: func(a *attacker2, i int) error { return a.WriteWindowUpdate(uint32(2*(i%openStreams)+1), 1) },
		times: 20_000, large: openStreams,
	},
	"CVE-2019-9512 ping flood": {
		begin: (*attacker2).clog,
		again: func(a *attacker2, _ int) error { return a.WritePing(false, [8]byte{}) }, deaf: true,
	},
	"CVE-2019-9513 resource loop: priorities that change": {
		again: func(a *attacker2, i int) error {
			id := uint32(2*i + 1)
			turned := http2.PriorityParam{StreamDep: uint32(2*((i+7)%openStreams) + 1), Exclusive: true}
			return errors.Join(a.WritePriority(uint32(2*(i%openStreams)+1), turned),
				a.WritePriority(id, http2.PriorityParam{StreamDep: id + 2}), a.WritePriorityUpdate(id, "u=1, i"))
		},
		times: 10_000,
	},
	"CVE-2019-9514 reset flood: requests that are malformed": {
		begin: (*attacker2).clog,
		// A field name in upper case makes the server reset the stream.
		again: func(a *attacker2, _ int) error { return a.block(plainHead + "\x00\x01A\x01b") }, deaf: true,
	},
	"CVE-2019-9515 settings flood": {
		again: func(a *attacker2, i int) error {
			return a.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(i)})
		},
		times: 50_000, deaf: true,
	},
	"CVE-2019-9516 names and values of no length": {
		again: func(a *attacker2, _ int) error { return a.block(plainHead + strings.Repeat("\x00\x00\x00", 5000)) },
		times: 100,
	},
	"CVE-2019-9517 internal data buffering: answers that are not read": {
		again: func(a *attacker2, _ int) error { return a.ask("/large", true) }, times: openStreams, deaf: true,
		large: openStreams,
	},
	"CVE-2019-9518 empty frames: DATA": {
		begin: func(a *attacker2) error { return a.ask("/hang", false) },
		again: func(a *attacker2, _ int) error { return a.WriteData(a.id, false, nil) },
		times: 50_000,
	},
	"CVE-2019-9518 empty frames: HEADERS": {
		again: func(a *attacker2, _ int) error { return a.block("") }, times: 20_000,
	},
	"CVE-2019-9518 empty frames: CONTINUATION": {
		begin: func(a *attacker2) error {
			return a.WriteHeaders(http2.HeadersFrameParam{StreamID: a.next(), BlockFragment: []byte(plainHead)})
		},
		again: func(a *attacker2, _ int) error { return a.WriteContinuation(a.id, false, nil) },
		times: 50_000,
	},
	"CVE-2019-9518 empty frames: PUSH_PROMISE": {
		again: func(a *attacker2, _ int) error {
			return a.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true})
		},
	},
	"CVE-2023-44487 rapid reset": {
		again: func(a *attacker2, _ int) error {
			return errors.Join(a.ask("/hang", true), a.WriteRSTStream(a.id, http2.ErrCodeCancel))
		},
		times: 3000,
	},
	"CVE-2024-27316 continuation flood": {
		begin: func(a *attacker2) error {
			return a.WriteHeaders(http2.HeadersFrameParam{StreamID: a.next(), BlockFragment: []byte(plainHead)})
		},
		again: func(a *attacker2, _ int) error {
			return a.WriteContinuation(a.id, false, []byte("\x00\x01x\x7f\xa1\x1e"+strings.Repeat("x", 4000)))
		},
	},
	// The server resets the streams that the client has broken, but the endpoint continues with their requests.
	"CVE-2025-8671 MadeYouReset: a window that grows by nothing": madeYouReset(func(a *attacker2) error {
		return a.WriteWindowUpdate(a.id, 0)
	}),
	"CVE-2025-8671 MadeYouReset: a window that is too large": madeYouReset(func(a *attacker2) error {
		return errors.Join(a.WriteWindowUpdate(a.id, 1<<31-1), a.WriteWindowUpdate(a.id, 1<<31-1))
	}),
	"CVE-2025-8671 MadeYouReset: a stream that depends on itself": madeYouReset(func(a *attacker2) error {
		return a.WritePriority(a.id, http2.PriorityParam{StreamDep: a.id})
	}),
	"CVE-2025-8671 MadeYouReset: DATA behind the end": madeYouReset(func(a *attacker2) error {
		return a.WriteData(a.id, true, []byte("x"))
	}),
	"CVE-2025-8671 MadeYouReset: HEADERS behind the end": madeYouReset(func(a *attacker2) error {
		return a.WriteHeaders(http2.HeadersFrameParam{
			StreamID: a.id, BlockFragment: []byte(plainHead), EndStream: true, EndHeaders: true,
		})
	}),
	// A field of 4,000 bytes is added to the HPACK table, and then referenced by one byte.
	"CVE-2016-6581 HPACK bomb": {
		again: func(a *attacker2, i int) error {
			if i == 0 {
				return a.block(plainHead + "\x40\x01x\x7f\xa1\x1e" + strings.Repeat("x", 4000))
			}
			return a.block(plainHead + strings.Repeat("\xbe", 16_000))
		},
		times: 50,
	},
}

// madeYouReset opens streams with requests that the endpoint does not answer, and makes the server reset each.
func madeYouReset(broken func(a *attacker2) error) flood2 {
	return flood2{
		again: func(a *attacker2, _ int) error { return errors.Join(a.ask("/hang", true), broken(a)) }, times: 1000,
	}
}

// TestFloodsOfHTTP2 attacks with HTTP/2, with and without TLS, as each advisory describes. It checks that honest
// requests of other clients succeed, that the resources of the process are limited, and that all are released.
func TestFloodsOfHTTP2(t *testing.T) {
	s := besiege(t)
	for name, c := range floodsOfHTTP2 {
		t.Run(name, func(t *testing.T) {
			s.byEachVersion(t, func(t *testing.T, in *ingress) {
				s.withstands(t, func() (leave func()) {
					wait := reached(t, &s.endpoint.large, c.large)
					a := in.attacker2(c.deaf)
					a.send(t, c)
					wait()
					return func() { _ = a.conn.Close() }
				})
			}, plain1, secure1, secure3) // These versions have no such frames.
		})
	}
}

func (in *ingress) attacker2(deaf bool) *attacker2 {
	in.Helper()
	conn := in.connect2()
	a := &attacker2{conn: conn, out: bufio.NewWriterSize(conn.Conn, 32<<10)}
	var err error
	if a.stream2, err = newStream2(a.out, nil); err != nil {
		in.Fatal(err)
	}
	a.id = ^uint32(0) // The first stream is 1.
	if !deaf {
		go a.listen()
	}
	return a
}

// listen reads the server's frames. It closes the connection after a GOAWAY, since the server then only waits a while.
func (a *attacker2) listen() {
	from := http2.NewFramer(nil, a.conn.Reader)
	for {
		frame, err := from.ReadFrame()
		if err != nil || frame.Header().Type == http2.FrameGoAway {
			_ = a.conn.Close()
			return
		}
	}
}

// send runs the attack. It fails the test if the server does not close the connection although it has to.
func (a *attacker2) send(t *testing.T, c flood2) {
	t.Helper()
	err := error(nil)
	if c.begin != nil {
		err = c.begin(a)
	}
	for i := 0; err == nil && (i < c.times || c.times == 0); i++ {
		err = c.again(a, i)
	}
	if err = errors.Join(err, a.out.Flush()); c.times == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the server does not end the connection")
	}
}

// next starts another stream.
func (a *attacker2) next() uint32 {
	a.id += 2
	return a.id
}

// clog requests a response that fills the connection, so that all later frames of the server wait in the server.
func (a *attacker2) clog() error { return a.ask("/large", true) }

// ask sends a request on another stream.
func (a *attacker2) ask(path string, end bool) error {
	a.next()
	method := "POST"
	if end {
		method = "GET"
	}
	pseudo := []string{":method: " + method, ":scheme: https", ":authority: a.example", ":path: " + path}
	return a.head(pseudo, end)
}

// block sends an HPACK-encoded head on another stream.
func (a *attacker2) block(fields string) error {
	return a.WriteHeaders(http2.HeadersFrameParam{
		StreamID: a.next(), BlockFragment: []byte(fields), EndStream: true, EndHeaders: true,
	})
}
