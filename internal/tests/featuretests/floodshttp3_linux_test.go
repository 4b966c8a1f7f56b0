package featuretests

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"
)

// flood3 is an attack on one HTTP/3 connection.
type flood3 struct {
	// begin is called first, if it is not nil.
	begin func(a *attacker3) error
	// again is called times times. 0 means until the server closes the connection, which it must.
	again func(a *attacker3, i int) error
	times int
	// config is the client's configuration. Nil uses the defaults.
	config *quic.Config
}

// attacker3 is an attacking HTTP/3 client.
type attacker3 struct {
	conn    *quic.Conn
	control *quic.SendStream
	// stream3 is the stream that was opened last. quic is the same stream.
	*stream3
	quic *quic.Stream
	ctx  context.Context //nolint:containedctx // It is that of the test.
}

// The types of a frame that the server does not know, of a frame that must come first and only once, and of the QPACK
// encoder stream.
const (
	frameUnknown  = 0x21
	frameSettings = 0x04
	streamEncoder = 0x02
)

// floodsOfHTTP3 are named after similar advisories for HTTP/2. There is no flood of PING frames, since no client
// library can send them at will: quic-go sends one acknowledgement for a packet, whatever its content.
var floodsOfHTTP3 = map[string]flood3{
	"rapid reset, as CVE-2023-44487": {
		again: func(a *attacker3, _ int) error {
			err := a.ask("GET", "/hang", true)
			a.quic.CancelRead(quic.StreamErrorCode(http3.ErrCodeRequestCanceled))
			return err
		},
		times: 1000,
	},
	"requests that are cut off": {
		again: func(a *attacker3, _ int) error {
			err := a.ask("POST", "/hang", false)
			a.quic.CancelWrite(quic.StreamErrorCode(http3.ErrCodeRequestCanceled))
			a.quic.CancelRead(quic.StreamErrorCode(http3.ErrCodeRequestCanceled))
			return err
		},
		times: 1000,
	},
	"a head that is too long, as CVE-2024-27316": {
		again: func(a *attacker3, _ int) error {
			if err := a.open(); err != nil {
				return err
			}
			head := quicvarint.Append(quicvarint.Append(nil, frameHead), 1<<40)
			_, err := a.Write(append(head, make([]byte, 64<<10)...))
			a.quic.CancelRead(0)
			a.quic.CancelWrite(0)
			var refused *quic.StreamError
			if errors.As(err, &refused) {
				return nil
			}
			return err
		},
		times: 200,
	},
	"empty frames, as CVE-2019-9518": {
		begin: func(a *attacker3) error { return a.ask("POST", "/hang", false) },
		again: func(a *attacker3, _ int) error { return a.frame(frameData, nil, false) },
		times: 5000,
	},
	"frames of an unknown type": {
		begin: func(a *attacker3) error { return a.ask("POST", "/hang", false) },
		again: func(a *attacker3, _ int) error { return a.frame(frameUnknown, make([]byte, 16<<10), false) },
		times: 1000,
	},
	"answers that are taken byte by byte, as CVE-2019-9511": {
		config: &quic.Config{InitialStreamReceiveWindow: 1, MaxStreamReceiveWindow: 2},
		begin: func(a *attacker3) error {
			for range openStreams - 1 {
				if err := a.ask("GET", "/large", true); err != nil {
					return err
				}
			}
			return a.ask("GET", "/large", true)
		},
		again: func(a *attacker3, _ int) error {
			_, err := io.ReadFull(a.quic, make([]byte, 1))
			return err
		},
		times: 300,
	},
	"streams that are of no type": {
		again: func(a *attacker3, _ int) error {
			s, err := a.conn.OpenUniStreamSync(a.ctx)
			if err != nil {
				return err
			}
			_, err = s.Write(append(quicvarint.Append(nil, frameUnknown), make([]byte, 1000)...))
			return errors.Join(err, s.Close())
		},
		times: 1000,
	},
	"frames of an unknown type on the control stream": {
		again: func(a *attacker3, _ int) error {
			frame := quicvarint.Append(quicvarint.Append(nil, frameUnknown), 1000)
			_, err := a.control.Write(append(frame, make([]byte, 1000)...))
			return err
		},
		times: 3000,
	},
	"settings, as CVE-2019-9515": {
		again: func(a *attacker3, _ int) error {
			_, err := a.control.Write([]byte{frameSettings, 0})
			return err
		},
	},
	"fields of a table that there is not, as CVE-2016-6581": {
		again: func(a *attacker3, _ int) error {
			if err := a.open(); err != nil {
				return err
			}
			// The block requires 63 entries of the table, and its first field refers to it.
			err := a.frame(frameHead, []byte("\x40\x00"+strings.Repeat("\x80", 1000)), true)
			a.quic.CancelRead(0)
			return err
		},
		times: 1000,
	},
}

// TestFloodsOfHTTP3 is TestFloodsOfHTTP2 for HTTP/3.
func TestFloodsOfHTTP3(t *testing.T) {
	s := besiege(t)
	for name, c := range floodsOfHTTP3 {
		t.Run(name, func(t *testing.T) {
			in := s.speaking(t, secure3)
			s.withstands(t, func() (leave func()) {
				a := in.attacker3(t, c.config)
				a.attack(t, c)
				return func() { _ = a.conn.CloseWithError(0, "") }
			})
		})
	}
}

func (in *ingress) attacker3(t *testing.T, config *quic.Config) *attacker3 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	a := &attacker3{ctx: ctx}
	a.conn, a.control = in.dial3(config)
	return a
}

// attack runs the attack. It fails the test if the server does not close the connection although it has to.
func (a *attacker3) attack(t *testing.T, c flood3) {
	t.Helper()
	err := error(nil)
	if c.begin != nil {
		err = c.begin(a)
	}
	for i := 0; err == nil && (i < c.times || c.times == 0); i++ {
		err = c.again(a, i)
	}
	over := a.ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded)
	if over || c.times > 0 && err != nil && a.conn.Context().Err() == nil {
		t.Errorf("the attack does not come to its end: %v", err)
	}
}

// open opens a stream for a request.
func (a *attacker3) open() (err error) {
	if a.quic, err = a.conn.OpenStreamSync(a.ctx); err != nil {
		return err
	}
	a.stream3 = &stream3{WriteCloser: a.quic}
	return a.quic.SetDeadline(time.Now().Add(deadline))
}

// ask sends the head of a request on another stream.
func (a *attacker3) ask(method, path string, end bool) error {
	if err := a.open(); err != nil {
		return err
	}
	return a.head([]string{":method: " + method, ":scheme: https", ":authority: a.example", ":path: " + path}, end)
}
