package featuretests

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
)

// TestCompression checks that responses are compressed for clients that accept it, in each version of HTTP, and only
// if the keys enable it.
func TestCompression(t *testing.T) {
	short, long := strings.Repeat("some text ", 100), strings.Repeat("some text ", 100_000)
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		switch r.URL.Path {
		case "/short":
			fmt.Fprint(w, short)
		case "/long":
			w.Header().Set("Content-Length", fmt.Sprint(len(long)))
			fmt.Fprint(w, long)
		case "/cut":
			w.Header().Set("Content-Length", fmt.Sprint(len(long)))
			fmt.Fprint(w, long[:len(long)/2])
			panic(http.ErrAbortHandler)
		case "/pieces":
			fmt.Fprint(w, "first")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case "/trailer":
			w.Header().Set("Trailer", "X-Behind")
			fmt.Fprint(w, long)
			w.Header().Set("X-Behind", "yes")
		}
	})
	objects := class + service("one", port, ip) + rule("a", "a.example", "Prefix", "/", "one")
	in := start(t, objects+global(`use-gzip: "false"`), "configmap default/global")
	if got := in.sendBy(in.client, in.origin("a.example")+"/short", "GET", nil,
		"Accept-Encoding: gzip"); got.body != short {
		t.Errorf("without use-gzip, the body is %q", got.body)
	}
	in.write("manifests.yaml", objects+global(`use-gzip: "true"`, `enable-brotli: "true"`))
	in.eventually("compression", func() error {
		got := in.sendBy(in.client, in.origin("a.example")+"/short", "GET", nil, "Accept-Encoding: br")
		if got.header.Get("Content-Encoding") != "br" {
			return fmt.Errorf("got %v", got.header)
		}
		return nil
	})
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for path, want := range map[string]string{"/short": short, "/long": long, "/trailer": long} {
			in.compressed(path, "gzip", want)
			in.compressed(path, "br", want)
			if got := in.sendBy(in.client, in.origin("a.example")+path, "GET", nil,
				"Accept-Encoding: identity"); got.body != want {
				t.Errorf("%s: a client that accepts nothing gets %d bytes", path, len(got.body))
			}
		}
		if trailer := in.compressed("/trailer", "gzip", long).Get("X-Behind"); trailer != "yes" {
			t.Errorf("the trailer is %q", trailer)
		}
		response, err := in.accepting("/pieces", "gzip")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		first := make([]byte, len("first"))
		if from, err := gzip.NewReader(response.Body); err != nil {
			t.Error(err)
		} else if _, err := io.ReadFull(from, first); string(first) != "first" {
			t.Errorf("the first piece is %q with %v", first, err)
		}
		if n, err := in.readAll("/cut"); err == nil {
			t.Errorf("%d bytes pass for all of an answer that breaks off", n)
		}
	})
}

// accepting sends a request for a path that accepts a coding.
func (in *ingress) accepting(path, coding string) (*http.Response, error) {
	in.Helper()
	request, err := http.NewRequestWithContext(in.Context(), http.MethodGet, in.origin("a.example")+path, nil)
	if err != nil {
		in.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", coding)
	return in.client.Do(request)
}

// readAll returns the number of bytes of a response that arrive. A response that breaks off may do so before its
// header has been read.
func (in *ingress) readAll(path string) (int64, error) {
	in.Helper()
	response, err := in.accepting(path, "gzip")
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return io.Copy(io.Discard, response.Body)
}

// compressed sends a request whose response must be compressed, and returns the response header.
func (in *ingress) compressed(path, coding, want string) http.Header {
	in.Helper()
	response, err := in.accepting(path, coding)
	if err != nil {
		in.Fatal(err)
	}
	defer response.Body.Close()
	if got := response.Header.Get("Content-Encoding"); got != coding || response.ContentLength == int64(len(want)) {
		in.Fatalf("%s: the encoding is %q, not %q, and the length %d", path, got, coding, response.ContentLength)
	}
	var from io.Reader = brotli.NewReader(response.Body)
	if coding == "gzip" {
		if from, err = gzip.NewReader(response.Body); err != nil {
			in.Fatal(err)
		}
	}
	if text, err := io.ReadAll(from); string(text) != want || err != nil {
		in.Fatalf("%s by %s: the body has %d bytes, and %v", path, coding, len(text), err)
	}
	// After the end of the gzip data comes the end of the body, with its trailers.
	if n, err := io.Copy(io.Discard, response.Body); n != 0 || err != nil {
		in.Fatalf("%s by %s: %d bytes too many, and %v", path, coding, n, err)
	}
	return response.Trailer
}

// TestCompressionKeys checks which responses are compressed, and at which level.
func TestCompressionKeys(t *testing.T) {
	words := strings.Builder{}
	for i := range 20_000 {
		fmt.Fprint(&words, i*i%1009, " of some text, ")
	}
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		if r.URL.Path == "/json" {
			w.Header().Set("Content-Type", "application/json")
		}
		text := words.String()
		if r.URL.Path != "/long" {
			text = text[:1000]
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		fmt.Fprint(w, text)
	})
	in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one"),
		"configmap default/global")
	var now []string
	sizes := map[string]int{}
	for _, c := range []struct {
		keys []string
		path string
		want string
	}{
		{nil, "/short", "gzip"}, {nil, "/short", "br"},
		{[]string{"gzip-min-length=1001"}, "/short", ""}, {[]string{"gzip-min-length=1000"}, "/short", "gzip"},
		{[]string{"gzip-types=application/json"}, "/short", ""},
		{[]string{"gzip-types=application/json"}, "/json", "gzip"},
		{[]string{"gzip-disable=old|older"}, "/short", ""}, {[]string{"gzip-disable=new"}, "/short", "gzip"},
		{[]string{"brotli-min-length=1001"}, "/short", "gzip"}, {[]string{"brotli-min-length=1000"}, "/short", "br"},
		{[]string{"brotli-types=application/json"}, "/short", "gzip"},
		{[]string{"brotli-types=application/json"}, "/json", "br"},
		{[]string{"gzip-level=1"}, "/long", "gzip"}, {[]string{"gzip-level=9"}, "/long", "gzip"},
		{[]string{"brotli-level=0"}, "/long", "br"}, {[]string{"brotli-level=9"}, "/long", "br"},
	} {
		brotli := c.want == "br" || slices.ContainsFunc(c.keys,
			func(key string) bool { return strings.HasPrefix(key, "brotli") })
		if keys := append(c.keys, "use-gzip=true", fmt.Sprint("enable-brotli=", brotli)); !slices.Equal(keys, now) {
			in.globalKeys(keys...)
			now = keys
		}
		what := fmt.Sprint(c.keys, c.path)
		in.eventually(what, func() error {
			got := in.send(http.MethodGet, c.path, nil, "Accept-Encoding: gzip, br", "User-Agent: Older")
			sizes[what] = len(got.body)
			if coding := got.header.Get("Content-Encoding"); coding != c.want {
				return fmt.Errorf("the coding is %q, want %q", coding, c.want)
			}
			return nil
		})
	}
	for fast, hard := range map[string]string{"[gzip-level=1]/long": "[gzip-level=9]/long",
		"[brotli-level=0]/long": "[brotli-level=9]/long"} {
		if sizes[hard] >= sizes[fast] {
			t.Errorf("%s makes %d bytes of it, and %s %d", fast, sizes[fast], hard, sizes[hard])
		}
	}
}
