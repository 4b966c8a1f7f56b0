package featuretests

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// upgrade has the header lines of a WebSocket handshake.
var upgrade = []string{"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
	"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="}

const switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"

// sockets returns the handler of an endpoint with a connection that echoes lines at /echo, and a connection that sends
// "tick" every 300 ms at /ticks.
func sockets(t *testing.T, ends chan<- string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Connection") != "Upgrade" {
			fmt.Fprintf(w, "plain %q", r.Header["Upgrade"])
			return
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, switched)
		if r.URL.Path == "/ticks" {
			tick := time.NewTicker(300 * time.Millisecond)
			defer tick.Stop()
			for range tick.C {
				if _, err := io.WriteString(conn, "tick\n"); err != nil {
					return
				}
			}
		}
		_, err = io.Copy(conn, buffered)
		ends <- fmt.Sprint(err)
	}
}

// socket opens a WebSocket.
func (in *ingress) socket(path string) *dialed {
	in.Helper()
	d := in.connect()
	d.say("%s", get(path, upgrade...))
	if got := d.head(http.MethodGet); got.StatusCode != http.StatusSwitchingProtocols ||
		got.Header.Get("Upgrade") != "websocket" ||
		got.Header.Get("Sec-Websocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		in.Fatalf("got %s %v", got.Status, got.Header)
	}
	return d
}

// line reads the next line.
func (d *dialed) line() string {
	d.Helper()
	line, err := d.ReadString('\n')
	if err != nil {
		d.Fatalf("%q and then %v", line, err)
	}
	return strings.TrimSpace(line)
}

func TestWebSocket(t *testing.T) {
	ends := make(chan string, 10)
	in := inFront(t, sockets(t, ends), "proxy-read-timeout: 2")
	// Slow tests run at the same time. Two of them wait for an end at the endpoint, and there are two.
	t.Run("silence", func(t *testing.T) {
		for name, test := range map[string]func(t *testing.T, in *ingress, ends <-chan string){
			"idle": idleWebSocket, "client alone talks": talkingClient, "endpoint alone talks": talkingEndpoint,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, in.speaking(t, plain1), ends)
			})
		}
	})
	t.Run("a lot", func(t *testing.T) {
		in.byHTTP1(t, func(t *testing.T, in *ingress) {
			d := in.socket("/echo")
			sent := pattern(1 << 20)
			go func() { _, _ = d.Write(sent) }()
			got := make([]byte, len(sent))
			if _, err := io.ReadFull(d.Reader, got); err != nil || hash(got) != hash(sent) {
				t.Errorf("%s, not %s: %v", hash(got), hash(sent), err)
			}
		})
	})
}

func idleWebSocket(t *testing.T, in *ingress, ends <-chan string) {
	d := in.socket("/echo")
	d.say("hello\n")
	if got := d.line(); got != "hello" {
		t.Errorf("got %q", got)
	}
	begin := time.Now()
	d.ends()
	took(t, "silence", begin, 1900*time.Millisecond)
	await(t, "the end at the endpoint", ends)
}

func talkingClient(t *testing.T, in *ingress, ends <-chan string) {
	d := in.socket("/echo")
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for i := range 8 {
		<-tick.C
		d.say("%d\n", i)
	}
	for i := range 8 {
		if got := d.line(); got != fmt.Sprint(i) {
			t.Errorf("got %q", got)
		}
	}
	_ = d.Close()
	await(t, "the end at the endpoint", ends)
}

func talkingEndpoint(t *testing.T, in *ingress, _ <-chan string) {
	d := in.socket("/ticks")
	for range 8 {
		if got := d.line(); got != "tick" {
			t.Errorf("got %q", got)
		}
	}
}

// TestUnrequestedSwitch checks that 101 from an endpoint without a request for an upgrade results in 502.
func TestUnrequestedSwitch(t *testing.T) {
	var says atomic.Value
	in := inFront(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, says.Load().(string))
		_, _ = io.Copy(io.Discard, conn)
	})
	for name, c := range map[string]struct {
		says string
		asks []string
	}{
		"not asked":              {switched, []string{"X-A: 1"}},
		"not asked, without":     {"HTTP/1.1 101 Switching Protocols\r\n\r\n", []string{"X-A: 1"}},
		"asked, without Upgrade": {"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n", upgrade},
		"asked, another":         {strings.ReplaceAll(switched, "websocket", "h2c"), upgrade},
		"asked for h2c": {strings.ReplaceAll(switched, "websocket", "h2c"),
			[]string{"Connection: Upgrade", "Upgrade: h2c"}},
		"asked, no Connection": {strings.ReplaceAll(switched, "Connection: Upgrade\r\n", ""), []string{"X-A: 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			says.Store(c.says)
			in.byHTTP1(t, func(t *testing.T, in *ingress) {
				d, begin := in.connect(), time.Now()
				d.say("%s", get("/", c.asks...))
				if got := d.hear(http.MethodGet); got != "502" {
					t.Errorf("got %q", got)
				}
				took(t, "it", begin, 0)
			})
		})
	}
}

// TestUpgradeWithoutSwitch checks that upgrades other than WebSocket over HTTP/1.1 are forwarded as ordinary requests.
func TestUpgradeWithoutSwitch(t *testing.T) {
	in := inFront(t, sockets(t, make(chan string, 10)))
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		// Go's clients do not send Upgrade here. Clients that do follow below.
		if got := in.send(http.MethodGet, "/", nil, "Sec-WebSocket-Version: 13",
			"Sec-WebSocket-Key: x"); got.body != "plain []" {
			t.Errorf("%d %q", got.status, got.body)
		}
	}, plain1, secure1) // These versions have upgrades.
	in.byHTTP1(t, func(t *testing.T, in *ingress) {
		for name, headers := range map[string][]string{
			"no Connection":  {"Upgrade: websocket"},
			"another":        {"Upgrade: foo", "Connection: Upgrade"},
			"one of several": {"Upgrade: foo, websocket", "Connection: Upgrade"},
		} {
			d := in.connect()
			d.say("%s", get("/", headers...))
			if got := d.hear(http.MethodGet); got != "200 plain []" {
				t.Errorf("%s: %q", name, got)
			}
		}
		d := in.connect()
		d.say("%s", strings.Replace(get("/", upgrade...), "HTTP/1.1", "HTTP/1.0", 1))
		if got := d.hear(http.MethodGet); !strings.HasPrefix(got, "200 plain") {
			t.Errorf("HTTP/1.0: %q", got)
		}
	})
}

// TestWebSocketWithBody checks that a WebSocket handshake with a body gets 400, whatever its framing, and that the
// endpoint does not get it. Other upgrades with a body are ordinary requests: Java's client sends Upgrade: h2c with
// each POST.
func TestWebSocketWithBody(t *testing.T) {
	in := inFront(t, sockets(t, make(chan string, 10)), "proxy-request-buffering: off")
	in.byHTTP1(t, func(t *testing.T, in *ingress) {
		for name, framing := range map[string]string{"chunks": "Transfer-Encoding: chunked",
			"length": "Content-Length: 50"} {
			d := in.connect()
			d.say("%s5\r\nhello\r\n", get("/echo", append(slices.Clone(upgrade), framing)...))
			if got := d.hear(http.MethodGet); got != "400" {
				t.Errorf("%s: got %q", name, got)
			}
		}
		d := in.connect()
		d.say("%s", get("/echo", append(slices.Clone(upgrade), "Content-Length: 0")...))
		if got := d.head(http.MethodGet); got.StatusCode != http.StatusSwitchingProtocols {
			t.Errorf("without a body: got %s", got.Status)
		}
		d = in.connect()
		d.say("%shello", get("/", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk",
			"Content-Length: 5"))
		if got := d.hear(http.MethodGet); got != "200 plain []" {
			t.Errorf("h2c: got %q", got)
		}
	})
}

// TestBadWebSocketHandshake sends handshakes with missing or wrong fields. It checks that the endpoint decides, and
// that the connection can be reused after a rejection. HTTP/2 and HTTP/3 have no such handshake: they reject Upgrade
// and CONNECT (TestWireOfFrames).
func TestBadWebSocketHandshake(t *testing.T) {
	in := inFront(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "websocket" {
			w.WriteHeader(http.StatusUpgradeRequired)
		}
		fmt.Fprint(w, r.Header["Sec-Websocket-Version"], r.Header["Sec-Websocket-Key"])
	})
	asks := upgrade[:2]
	for name, c := range map[string]struct {
		fields []string
		want   string
	}{
		"nothing":     {nil, "426 [] []"},
		"no key":      {[]string{"Sec-WebSocket-Version: 13"}, "426 [13] []"},
		"a short key": {[]string{"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: x"}, "426 [13] [x]"},
		"two keys": {[]string{"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: x", "Sec-WebSocket-Key: y"},
			"426 [13] [x y]"},
		"old versions": {[]string{"Sec-WebSocket-Version: 8", "Sec-WebSocket-Version: 7"}, "426 [8 7] []"},
	} {
		t.Run(name, func(t *testing.T) {
			in.byHTTP1(t, func(t *testing.T, in *ingress) {
				d := in.connect()
				d.say("%s", get("/", append(slices.Clone(asks), c.fields...)...))
				if got := d.hear(http.MethodGet); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
				d.say("%s", get("/"))
				if got := d.hear(http.MethodGet); got != "200 [] []" {
					t.Errorf("and then %q", got)
				}
			})
		})
	}
}

// TestRefusedUpgrade checks that an endpoint may reject the upgrade, and that the connection can be reused.
func TestRefusedUpgrade(t *testing.T) {
	in := inFront(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			http.Error(w, "no "+r.Header.Get("Sec-Websocket-Key"), http.StatusForbidden)
			return
		}
		fmt.Fprint(w, "ok")
	})
	in.byHTTP1(t, func(t *testing.T, in *ingress) {
		d := in.connect()
		d.say("%s", get("/", upgrade...))
		if got := d.hear(http.MethodGet); got != "403 no dGhlIHNhbXBsZSBub25jZQ==" {
			t.Errorf("got %q", got)
		}
		d.say("%s", get("/"))
		if got := d.hear(http.MethodGet); got != "200 ok" {
			t.Errorf("and then %q", got)
		}
	})
}

// TestEvents checks that each event reaches the client before the next one is sent, on each protocol.
func TestEvents(t *testing.T) {
	next, ends := make(chan string), make(chan struct{}, 100)
	in := inFront(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			select {
			case text := <-next:
				fmt.Fprintf(w, "data: %s\n\n", text)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				ends <- struct{}{}
				return
			}
		}
	})
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		in.follows(t, next)
		await(t, "the end at the endpoint", ends)
	})
}

func (in *ingress) follows(t *testing.T, next chan<- string) {
	go func() { next <- "first" }()
	response, err := in.client.Do(in.request("/"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	reader := bufio.NewReader(response.Body)
	for _, want := range []string{"first", "second", "third"} {
		if want != "first" {
			next <- want
		}
		for _, want := range []string{"data: " + want + "\n", "\n"} {
			if got, err := reader.ReadString('\n'); got != want {
				t.Fatalf("got %q, %v, not %q", got, err, want)
			}
		}
	}
}
