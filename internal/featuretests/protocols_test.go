package featuretests

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// fronts are clients of the protocols that are spoken in front.
func (in *ingress) fronts() map[string]*http.Client {
	in.Helper()
	tlsConfig := func() *tls.Config { return &tls.Config{ServerName: "a.example", InsecureSkipVerify: true} }
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", in.https)
	}
	one := &http.Transport{TLSClientConfig: tlsConfig(), DialContext: dial, DisableCompression: true}
	two := &http.Transport{TLSClientConfig: tlsConfig(), DialContext: dial, DisableCompression: true, Protocols: new(http.Protocols)}
	two.Protocols.SetHTTP2(true)
	three := &http3.Transport{
		TLSClientConfig: tlsConfig(), DisableCompression: true,
		Dial: func(ctx context.Context, _ string, t *tls.Config, q *quic.Config) (*quic.Conn, error) {
			return quic.DialAddr(ctx, in.https, t, q)
		},
	}
	in.Cleanup(func() {
		one.CloseIdleConnections()
		two.CloseIdleConnections()
		_ = three.Close()
	})
	return map[string]*http.Client{
		"HTTP/1.1": {Transport: one, Timeout: deadline}, "HTTP/2.0": {Transport: two, Timeout: deadline},
		"HTTP/3.0": {Transport: three, Timeout: deadline},
	}
}

// TestProtocolsInFront holds that a path answers the same on each protocol, body, trailers and early hints included.
func TestProtocolsInFront(t *testing.T) {
	in := inFront(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		w.Header().Set("Link", "</a.css>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Trailer", "X-Sum")
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, "%s %s %s %v %v", r.Proto, r.Method, hash(body), err, r.Trailer["X-Checked"])
		w.Header().Set("X-Sum", "7")
	}, "proxy-body-size: 8m")
	for name, client := range in.fronts() {
		for _, way := range ways {
			for _, size := range []int{0, 5, 100 << 10} {
				t.Run(fmt.Sprintf("%s, %s way, %d bytes", name, way, size), func(t *testing.T) { in.inFront(t, client, name, way, size) })
			}
		}
	}
}

func (in *ingress) inFront(t *testing.T, client *http.Client, name, way string, size int) {
	var hints []string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(status int, header textproto.MIMEHeader) error {
		hints = append(hints, fmt.Sprint(status, header["Link"]))
		return nil
	}})
	sent := pattern(size)
	body := struct{ io.Reader }{strings.NewReader(string(sent))}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, "https://a.example/path?q=1", body)
	if err != nil {
		t.Fatal(err)
	}
	request.Trailer = http.Header{"X-Checked": {"yes"}}
	if way == "long" {
		request.Header.Set("Incremental", "?0")
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	want := fmt.Sprintf("HTTP/1.1 PUT %s <nil> [yes]", hash(sent))
	if name == "HTTP/3.0" {
		// The server of HTTP/3 that Caddy has reads the trailers of a request, and tells nobody.
		want = strings.Replace(want, "[yes]", "[]", 1)
	}
	if err != nil || response.Proto != name || response.StatusCode != http.StatusAccepted || string(got) != want {
		t.Errorf("got %s %d %q, %v; want %q", response.Proto, response.StatusCode, got, err, want)
	}
	if got := response.Trailer.Get("X-Sum"); got != "7" {
		t.Errorf("trailers are %v", response.Trailer)
	}
	if !slices.Equal(hints, []string{"103 [</a.css>]"}) {
		t.Errorf("early hints are %v", hints)
	}
}

// TestTrailersOfAStream: those of a body that is not waited for come behind it, too.
func TestTrailersOfAStream(t *testing.T) {
	in := inFront(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %v %v", body, err, r.Trailer["X-Checked"])
	}, "proxy-request-buffering: off")
	clients := in.fronts()
	delete(clients, "HTTP/3.0") // As above.
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			body := struct{ io.Reader }{strings.NewReader("body")}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://a.example/", body)
			if err != nil {
				t.Fatal(err)
			}
			request.Trailer = http.Header{"X-Checked": {"yes"}}
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if body, err := io.ReadAll(response.Body); err != nil || string(body) != "body <nil> [yes]" {
				t.Errorf("got %q, %v", body, err)
			}
		})
	}
}

// TestExpectContinue: who asks first is told to go on when the body is wanted, and only then.
func TestExpectContinue(t *testing.T) {
	in := inFront(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %q", body, r.Header.Get("Expect"))
	}, "proxy-body-size: 10")
	for _, way := range ways {
		d := in.connect()
		d.say("%s", head("POST / HTTP/1.1", byWay(way, "Expect: 100-continue", "Content-Length: 4")...))
		if got := d.hear(http.MethodPost); got != "100" {
			t.Fatalf("%s way: %q before the body", way, got)
		}
		d.say("body")
		if got := d.hear(http.MethodPost); got != `200 body ""` {
			t.Errorf("%s way: %q", way, got)
		}
		d.say("%s", head("POST / HTTP/1.1", byWay(way, "Expect: 100-continue", "Content-Length: 40")...))
		if got := d.hear(http.MethodPost); got != "413" {
			t.Errorf("%s way: %q for a body that is too large", way, got)
		}
		d.ends()
	}
}

// TestEarlyAnswer: an endpoint may answer before it has the body, whatever the client waits for. What comes next on the
// connection is the next request, or there is no next one.
func TestEarlyAnswer(t *testing.T) {
	for _, buffering := range []string{"on", "off"} {
		in := inFront(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/early" {
				w.WriteHeader(http.StatusExpectationFailed)
				return
			}
			fmt.Fprint(w, r.URL.Path)
		}, "proxy-request-buffering: "+buffering)
		for _, way := range ways {
			t.Run(way+" way, buffering "+buffering, func(t *testing.T) { in.answersEarly(t, way) })
		}
		in.stop()
	}
}

func (in *ingress) answersEarly(t *testing.T, way string) {
	d := in.connect()
	d.say("%s", head("POST /early HTTP/1.1", byWay(way, "Expect: 100-continue", "Content-Length: 4")...))
	first := d.head(http.MethodPost)
	if first.StatusCode == http.StatusContinue {
		d.say("body")
		first = d.head(http.MethodPost)
	}
	if first.StatusCode != http.StatusExpectationFailed {
		t.Errorf("got %s", first.Status)
	}
	if first.Close {
		d.ends()
		return
	}
	d.say("%s", get("/next"))
	if got := d.hear(http.MethodGet); got != "200 /next" {
		t.Errorf("the next answer is %q", got)
	}
}
