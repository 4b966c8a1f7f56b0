package featuretests

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"testing"
)

// TestProtocolsInFront checks that a path has the same response on each protocol, including the body, trailers and
// early hints.
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
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, size := range []int{0, 5, 100 << 10} {
			t.Run(fmt.Sprintf("%d bytes", size), func(t *testing.T) { in.inFront(t, size) })
		}
	})
}

func (in *ingress) inFront(t *testing.T, size int) {
	var hints []string
	ctx := httptrace.WithClientTrace(t.Context(),
		&httptrace.ClientTrace{Got1xxResponse: func(status int, header textproto.MIMEHeader) error {
			hints = append(hints, fmt.Sprint(status, header["Link"]))
			return nil
		}})
	sent := pattern(size)
	body := struct{ io.Reader }{strings.NewReader(string(sent))}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, in.origin("a.example")+"/path?q=1", body)
	if err != nil {
		t.Fatal(err)
	}
	request.Trailer = http.Header{"X-Checked": {"yes"}}
	response, err := in.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	want := fmt.Sprintf("HTTP/1.1 PUT %s <nil> [yes]", hash(sent))
	if err != nil || response.Proto != protocols[in.version] || response.StatusCode != http.StatusAccepted ||
		string(got) != want {
		t.Errorf("got %s %d %q, %v; want %q", response.Proto, response.StatusCode, got, err, want)
	}
	if got := response.Trailer.Get("X-Sum"); got != "7" {
		t.Errorf("trailers are %v", response.Trailer)
	}
	if !slices.Equal(hints, []string{"103 [</a.css>]"}) {
		t.Errorf("early hints are %v", hints)
	}
}

// TestTrailersOfAStream checks that a body that is forwarded without buffering keeps its trailers.
func TestTrailersOfAStream(t *testing.T) {
	in := inFront(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %v %v", body, err, r.Trailer["X-Checked"])
	}, "proxy-request-buffering: off")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		body := struct{ io.Reader }{strings.NewReader("body")}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, in.origin("a.example"), body)
		if err != nil {
			t.Fatal(err)
		}
		request.Trailer = http.Header{"X-Checked": {"yes"}}
		response, err := in.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, response); got.body != "body <nil> [yes]" {
			t.Errorf("got %q", got.body)
		}
	})
}

// TestTE checks that only gRPC endpoints get the TE field of a client, and that the trailers of each kind of endpoint
// reach the client, whether or not the client has sent TE.
func TestTE(t *testing.T) {
	for protocol, want := range map[string]string{"HTTP": "[] []", "HTTPS": "[] []", "GRPC": "[trailers] []"} {
		t.Run(protocol, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Trailer", "X-Sum")
				fmt.Fprint(w, r.Header["Te"], r.Header["Connection"])
				// Without this, net/http would send a Content-Length, and HTTP/1.1 clients could get no trailers.
				_ = http.NewResponseController(w).Flush()
				w.Header().Set("X-Sum", "7")
			}))
			server.Config.Protocols = new(http.Protocols)
			server.Config.Protocols.SetUnencryptedHTTP2(protocol == "GRPC")
			server.Config.Protocols.SetHTTP1(protocol != "GRPC")
			if protocol == "HTTPS" {
				server.StartTLS()
			} else {
				server.Start()
			}
			t.Cleanup(server.Close)
			ip, port := hostPort(t, server.Listener.Addr())
			inFrontOf(t, ip, port, "backend-protocol: "+protocol).byEachVersion(t, func(t *testing.T, in *ingress) {
				for fields, want := range map[string]string{"X-A: 1": "[] []", "TE: trailers": want} {
					got := in.exchange((&question{fields: []string{fields}}).usual())
					if got.body != want || got.broken != "" || got.trailers.Get("X-Sum") != "7" {
						t.Errorf("with %q: %s with trailers %v, want %s", fields, got, got.trailers, want)
					}
				}
			})
		})
	}
}

// TestExpectContinue checks that a client with "Expect: 100-continue" gets the interim response only when the body is
// needed.
func TestExpectContinue(t *testing.T) {
	in := inFront(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %q", body, r.Header.Get("Expect"))
	}, "proxy-body-size: 10")
	in.byHTTP1(t, func(t *testing.T, in *ingress) {
		d := in.connect()
		d.say("%s", head("POST / HTTP/1.1", "Expect: 100-continue", "Content-Length: 4"))
		if got := d.hear(http.MethodPost); got != "100" {
			t.Fatalf("%q before the body", got)
		}
		d.say("body")
		if got := d.hear(http.MethodPost); got != `200 body ""` {
			t.Errorf("got %q", got)
		}
		d.say("%s", head("POST / HTTP/1.1", "Expect: 100-continue", "Content-Length: 40"))
		if got := d.hear(http.MethodPost); got != "413" {
			t.Errorf("%q for a body that is too large", got)
		}
		d.ends()
	})
}

// TestEarlyResponse checks endpoints that respond before they have received the body, with all kinds of clients.
// Afterwards the connection is either ready for the next request or closed.
func TestEarlyResponse(t *testing.T) {
	for _, buffering := range []string{"on", "off"} {
		in := inFront(t, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/417":
				w.WriteHeader(http.StatusExpectationFailed)
			case "/200":
				fmt.Fprint(w, "early")
			default:
				fmt.Fprint(w, r.URL.Path)
			}
		}, "proxy-request-buffering: "+buffering)
		in.byHTTP1(t, func(t *testing.T, in *ingress) { in.answersEarly(t) })
		// They are tested above.
		in.byEachVersion(t, func(t *testing.T, in *ingress) { in.answersEarlyByStream(t) }, plain1, secure1)
		in.stop()
	}
}

func (in *ingress) answersEarly(t *testing.T) {
	for path, want := range map[string]int{"/417": http.StatusExpectationFailed, "/200": http.StatusOK} {
		d := in.connect()
		d.say("%s", head("POST "+path+" HTTP/1.1", "Expect: 100-continue", "Content-Length: 4"))
		first := d.head(http.MethodPost)
		if first.StatusCode == http.StatusContinue {
			d.say("body")
			first = d.head(http.MethodPost)
		}
		if first.StatusCode != want {
			t.Errorf("%s: got %s", path, first.Status)
		}
		_, _ = io.Copy(io.Discard, first.Body)
		if first.Close {
			d.ends()
			continue
		}
		d.say("%s", get("/next"))
		if got := d.hear(http.MethodGet); got != "200 /next" {
			t.Errorf("%s: the next answer is %q", path, got)
		}
	}
}

// answersEarlyByStream sends the body without waiting for permission. The server accepts or rejects it.
func (in *ingress) answersEarlyByStream(t *testing.T) {
	for path, want := range map[string]string{"/417": "417", "/200": "200 early"} {
		first, next := in.twoStreams()
		q := question{
			method: http.MethodPost, path: path, fields: []string{"Expect: 100-continue", "Content-Length: 4"},
			body: []string{"body"},
		}
		if got := first.ask(q.usual()); got.String() != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
		q = question{path: "/next"}
		if got := next().ask(q.usual()); got.String() != "200 /next" {
			t.Errorf("%s: the next answer is %q", path, got)
		}
	}
}
