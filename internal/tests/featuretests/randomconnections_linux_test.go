package featuretests

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// whims maps hosts to endpoints: some of hostileEndpoints, and others.
func whims() map[string]func(conn net.Conn, in *bufio.Reader) {
	all := map[string]func(conn net.Conn, in *bufio.Reader){
		"many-hints": afterHead(sendText(strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 50) +
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")),
		"no-content": afterHead(sendText("HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nbody")),
		"switches":   afterHead(sendText(switched)),
		"old":        afterHead(sendText("HTTP/1.0 200 OK\r\n\r\nuntil the end")),
		"strange":    afterHead(sendText("HTTP/1.1 999 Strange\r\nContent-Length: 1\r\n\r\nx")),
	}
	for _, name := range []string{"unasked", "early", "twice", "without-end", "cut", "bad-chunks",
		"garbage", "vanishes"} {
		all[name] = hostileEndpoints[name]
	}
	return all
}

func sendText(text string) func(net.Conn) {
	return func(conn net.Conn) { _, _ = io.WriteString(conn, text) }
}

// TestRandomConnections sends up to four requests on each connection with clients of each version, with random framing,
// and disconnects after a random byte, while endpoints respond at random. It checks that honest requests of other
// clients succeed, that all resources are released, and that no goroutine panics.
func TestRandomConnections(t *testing.T) {
	var manifests strings.Builder
	endpoints := whims()
	for name, behave := range endpoints {
		manifests.WriteString(hostileManifests(t, name, endpointThat(t, behave)))
	}
	s := besiege(t, manifests.String())
	seed := rand.Uint64()
	t.Logf("the seed is %d", seed)
	const clients = 50
	s.byEachVersion(t, func(t *testing.T, in *ingress) {
		r := &randomly{rand.New(rand.NewPCG(seed, 0)), append(slices.Sorted(maps.Keys(endpoints)), "a")}
		before := in.metric("k8singress_panics_total")
		s.withstands(t, func() (leave func()) {
			var running sync.WaitGroup
			for range clients {
				running.Go(in.random(r))
			}
			running.Wait()
			return func() {}
		})
		if n := in.metric("k8singress_panics_total") - before; n > 0 {
			t.Errorf("there were %v panics", n)
		}
	})
}

// randomly generates requests for the given hosts.
type randomly struct {
	*rand.Rand
	names []string
}

// pick returns one of the values.
func pick[T any](r *randomly, from ...T) T { return from[r.IntN(len(from))] }

// question returns a request with a random body, or with the start of one.
func (r *randomly) question() *question {
	q := &question{method: pick(r, "GET", "POST", "PUT", "HEAD", "DELETE"), path: "/"}
	q.host = pick(r, r.names...) + ".example"
	body := string(pattern(pick(r, 0, 1, 100, 5_000, 200_000)))
	half := len(body) / 2
	switch r.IntN(5) {
	case 0:
		q.body = []string{body}
	case 1:
		q.body = []string{body[:half], body[half:]}
	case 2:
		q.body, q.trailers = []string{body[:half], body[half:]}, []string{"X-A: b"}
	case 3:
		q.body, q.open = []string{body}, true
	}
	for _, fields := range [][]string{{"Expect: 100-continue"}, upgrade, {"Connection: close"},
		{"Content-Length: 100"}} {
		if r.IntN(8) == 0 {
			q.fields = append(q.fields, fields...)
		}
	}
	return q
}

// random connects, and returns a function that uses the connection. The function may run on any goroutine, and reports
// no errors.
func (in *ingress) random(r *randomly) func() {
	in.Helper()
	questions := make([]*question, 1+r.IntN(4))
	for i := range questions {
		questions[i] = r.question()
	}
	if in.version == secure3 {
		return in.random3(r, questions)
	}
	text, connect := in.allWritten(questions), in.connect
	if in.version != plain1 && in.version != secure1 {
		connect = in.connect2
	}
	d, hard := connect(), r.IntN(2) == 0
	text = text[:r.IntN(len(text)+1)]
	return func() {
		go func() { _, _ = io.WriteString(d.Conn, text) }()
		_ = d.SetReadDeadline(time.Now().Add(patienceOfRandom))
		_, _ = io.CopyN(io.Discard, d.Reader, 64<<10)
		under := d.Conn
		if secured, ok := under.(*tls.Conn); ok {
			under = secured.NetConn()
		}
		if hard {
			_ = under.(*net.TCPConn).SetLinger(0)
		}
		_ = under.Close()
	}
}

// patienceOfRandom is how long a client waits for responses.
const patienceOfRandom = 200 * time.Millisecond

// allWritten returns the bytes of a connection with several requests.
func (in *ingress) allWritten(questions []*question) string {
	in.Helper()
	var text bytes.Buffer
	if in.version == plain1 || in.version == secure1 {
		for _, q := range questions {
			text.WriteString(q.http1())
		}
		return text.String()
	}
	s, err := newStream2(&text, nil)
	if err != nil {
		in.Fatal(err)
	}
	for _, q := range questions {
		if err := (streamed{s}).send(q); err != nil {
			in.Fatal(err)
		}
		s.id += 2
	}
	return text.String()
}

// random3 sends each request on a separate stream.
func (in *ingress) random3(r *randomly, questions []*question) func() {
	in.Helper()
	conn, _ := in.dial3(nil)
	texts := make([]string, len(questions))
	for i, q := range questions {
		texts[i] = in.written(q)
		texts[i] = texts[i][:r.IntN(len(texts[i])+1)]
	}
	ends := r.IntN(2) == 0
	return func() {
		ctx, cancel := context.WithTimeout(in.Context(), patienceOfRandom)
		defer cancel()
		for _, text := range texts {
			stream, err := conn.OpenStreamSync(ctx)
			if err != nil {
				break
			}
			_ = stream.SetDeadline(time.Now().Add(patienceOfRandom))
			if _, err := io.WriteString(stream, text); err == nil && ends {
				_ = stream.Close()
			}
			_, _ = io.CopyN(io.Discard, stream, 64<<10)
		}
		_ = conn.CloseWithError(0, "")
	}
}
