package featuretests

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestClientsDisconnect checks a POST whose client disconnects before any of its bytes. The endpoint never gets a
// request that looks complete, and no goroutine, file descriptor, connection or part of a body is left.
func TestClientsDisconnect(t *testing.T) {
	v, in := startVanishing(t, "proxy-request-buffering: on")
	in.byEachVersion(t, func(t *testing.T, in *ingress) { in.leavesAll(t, v) })
}

// TestClientsDisconnectUnbuffered is TestClientsDisconnect for bodies that are not buffered. An endpoint that has
// started to read one notices that the rest does not arrive.
func TestClientsDisconnectUnbuffered(t *testing.T) {
	v, in := startVanishing(t, "proxy-request-buffering: off")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		in.leavesAll(t, v)
		in.breaksOffAtTheEndpoint(t, v)
	})
}

func startVanishing(t *testing.T, buffering string) (*vanishing, *ingress) {
	t.Helper()
	v := &vanishing{whole: &log{}, begun: make(chan struct{}, 1), broken: make(chan error, 1)}
	return v, inFront(t, v.serve, buffering, "proxy-body-size: 8m")
}

// vanishing is an endpoint that keeps no connections.
type vanishing struct {
	// whole are the requests that were received completely.
	whole *log
	// begun receives when a part of a request for /waits has arrived, and broken how its body ended.
	begun  chan struct{}
	broken chan error
}

func (v *vanishing) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close")
	waits := r.URL.Path == "/waits"
	if waits {
		_, _ = io.ReadFull(r.Body, make([]byte, 5))
		v.begun <- struct{}{}
	}
	n, err := io.Copy(io.Discard, r.Body)
	if waits {
		v.broken <- err
	}
	if err == nil {
		v.whole.add("%s %d", r.URL.Path, n)
	}
	fmt.Fprint(w, n)
}

// leavesAll disconnects clients during requests with short and long bodies.
func (in *ingress) leavesAll(t *testing.T, v *vanishing) {
	t.Helper()
	in.leaves(t, v, []string{"0123456789"}, 1)
	in.leaves(t, v, []string{"01234", "56789"}, 1)
	// If this body is buffered, it is partly in memory and partly in a file.
	in.leaves(t, v, []string{string(pattern(700_000)), string(pattern(700_000))}, 50_001)
}

// leaves disconnects clients before each byte, or every step bytes.
func (in *ingress) leaves(t *testing.T, v *vanishing, body []string, step int) {
	t.Helper()
	whole := strings.Join(body, "")
	all := func() {
		t.Helper()
		got := in.send(http.MethodPost, "/whole", strings.NewReader(whole))
		if heard := v.whole.take(); got.status != http.StatusOK || len(heard) != 1 ||
			heard[0] != fmt.Sprint("/whole ", len(whole)) {
			t.Errorf("with all its bytes: %d, and the endpoint got %q", got.status, heard)
		}
		in.client.CloseIdleConnections()
		in.eventually("the end of its connection", in.keepsNothing)
	}
	all()
	before := heldNow()
	q := question{method: http.MethodPost, path: "/whole", body: body}
	text := in.written(q.usual())
	for n := 0; n < len(text); n += step {
		in.begins(text[:n])(n/step%2 == 0)
	}
	fixture.Eventually(t, "all is given back",
		func() error { return errors.Join(heldNow().beyond(before), in.keepsNothing()) })
	if got := v.whole.take(); len(got) > 0 {
		t.Errorf("the endpoint takes a part for the whole: %q", got)
	}
	all()
}

// breaksOffAtTheEndpoint disconnects clients when the endpoint has started to read an unbuffered body.
func (in *ingress) breaksOffAtTheEndpoint(t *testing.T, v *vanishing) {
	t.Helper()
	q := question{method: http.MethodPost, path: "/waits", body: []string{"01234", "56789"}, open: true}
	for _, hard := range []bool{true, false} {
		leave := in.begins(in.written(q.usual()))
		fixture.Receive(t, "the beginning", v.begun)
		leave(hard)
		if err := fixture.Receive(t, "the end", v.broken); err == nil {
			t.Error("the endpoint takes a part for the whole")
		}
	}
	v.whole.take()
}

var kept = regexp.MustCompile(`(?m)^k8singress_(?:body_bytes\{.*\}|client_connections) [^0].*$`)

// keepsNothing returns an error if there are client connections or parts of bodies.
func (in *ingress) keepsNothing() error {
	if held := kept.FindAllString(in.metrics(), -1); held != nil {
		return fmt.Errorf("it keeps %q", held)
	}
	return nil
}

// written returns a request as bytes: the whole connection, or in HTTP/3 the whole stream without its end.
func (in *ingress) written(q *question) string {
	in.Helper()
	var text bytes.Buffer
	var err error
	switch in.version {
	case secure3:
		err = streamed{&stream3{WriteCloser: unclosed{&text}}}.send(q)
	case plain2, secure2:
		var s *stream2
		if s, err = newStream2(&text, nil); err == nil {
			err = streamed{s}.send(q)
		}
	default:
		text.WriteString(q.http1())
	}
	if err != nil {
		in.Fatal(err)
	}
	return text.String()
}

type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// begins sends a part of the result of written on a new connection. leave ends the connection. With hard it does so
// without a close notification or, in HTTP/3, by resetting only the stream.
func (in *ingress) begins(text string) (leave func(hard bool)) {
	in.Helper()
	if in.version == secure3 {
		return in.begins3(text)
	}
	connect := in.connect
	if in.version == plain2 || in.version == secure2 {
		connect = in.connect2
	}
	d := connect()
	d.say("%s", text)
	return func(hard bool) {
		if !hard {
			_ = d.Close()
			return
		}
		under := d.Conn
		if secured, ok := under.(*tls.Conn); ok {
			under = secured.NetConn()
		}
		_ = under.(*net.TCPConn).SetLinger(0)
		_ = under.Close()
	}
}

func (in *ingress) begins3(text string) (leave func(hard bool)) {
	in.Helper()
	conn, stream := in.connect3()
	if _, err := io.WriteString(stream, text); err != nil {
		in.Fatal(err)
	}
	return func(hard bool) {
		if hard {
			stream.CancelWrite(quic.StreamErrorCode(http3.ErrCodeRequestCanceled))
			// When the server ends the other direction or the connection, it has noticed.
			_, _ = io.Copy(io.Discard, stream)
		}
		_ = conn.CloseWithError(0, "")
	}
}
