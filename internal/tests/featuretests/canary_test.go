package featuretests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// canaryOf starts an ingress for shop.example with a main Ingress, whose Service is "web", and a canary with these
// annotations, whose Service is "next". Their endpoints respond with the names of their Services.
func canaryOf(t *testing.T, main, canary []string) (in *ingress, manifests func(canary ...string) string) {
	t.Helper()
	_, web := backend(t, "web")
	_, next := backend(t, "next")
	base := class + service("web", web, "127.0.0.1") + service("next", next, "127.0.0.1")
	if len(main) > 0 {
		base += annotated("main", "shop.example", "web", main...)
	} else {
		base += rule("main", "shop.example", "Prefix", "/", "web")
	}
	manifests = func(canary ...string) string {
		return base + annotated("canary", "shop.example", "next", append([]string{"canary", "true"}, canary...)...)
	}
	return start(t, manifests(canary...)), manifests
}

// to returns the Service that responds to a request.
func (in *ingress) to(headers ...string) string {
	in.Helper()
	name, _, _ := strings.Cut(in.askWith(in.client, "/", headers...).body, " ")
	return name
}

// TestCanaryRules checks the order of the rules that select the canary: the header, the cookie, the weight.
func TestCanaryRules(t *testing.T) {
	header := func(value string) []string { return []string{"X-Canary", value} }
	cookie := func(value string) []string { return []string{"Cookie", "who=" + value} }
	cases := map[string]struct {
		canary []string
		// asked maps the Service to the headers of requests that it gets.
		asked map[string][]string
	}{
		"all by weight": {[]string{"canary-weight", "100"}, map[string][]string{"next": nil}},
		"hardly any": {[]string{"canary-weight", "100", "canary-weight-total", "2000000000"},
			map[string][]string{"web": nil}},
		"a header": {[]string{"canary-by-header", "X-Canary"}, map[string][]string{
			"next": header("always"), "web": header("never"), "web, too": header("perhaps"), "web, without": nil,
		}},
		"a header before the weight": {[]string{"canary-by-header", "x-canary", "canary-weight", "100"},
			map[string][]string{
				"web": header("never"), "next": header("perhaps"), "next, without": nil,
			}},
		"a value": {[]string{"canary-by-header", "X-Canary", "canary-by-header-value", "beta"}, map[string][]string{
			"next": header("beta"), "web": header("always"), "web, in another case": header("Beta"),
		}},
		"a pattern": {[]string{"canary-by-header", "X-Canary", "canary-by-header-pattern", "be(ta|st)"},
			map[string][]string{
				"next": header("a best one"), "web": header("bet"),
			}},
		"a pattern that is none": {
			[]string{"canary-by-header", "X-Canary", "canary-by-header-pattern", "be(", "canary-weight", "100"},
			map[string][]string{"web": header("be("), "next": nil},
		},
		"a cookie": {[]string{"canary-by-cookie", "who"}, map[string][]string{
			"next": cookie("always"), "web": cookie("never"), "web, too": cookie("x"),
		}},
	}
	_, web := backend(t, "web")
	_, next := backend(t, "next")
	manifests := class + service("web", web, "127.0.0.1") + service("next", next, "127.0.0.1")
	host := func(name string) string { return strings.NewReplacer(" ", "-", ",", "").Replace(name) + ".example" }
	for name, c := range cases {
		manifests += rule("main-"+host(name), host(name), "Prefix", "/", "web") +
			annotated("canary-"+host(name), host(name), "next", append([]string{"canary", "true"}, c.canary...)...)
	}
	in := start(t, manifests)
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for name, c := range cases {
			for want, headers := range c.asked {
				want, _, _ := strings.Cut(want, ",")
				if got, _, _ := strings.Cut(in.askAs(in.client, host(name), "/", headers...).body, " "); got != want {
					t.Errorf("%s: a request with %v goes to %s, want %s", name, headers, got, want)
				}
			}
		}
	})
}

// TestCanaryWeight checks that the canary gets its share of a thousand requests.
func TestCanaryWeight(t *testing.T) {
	in, _ := canaryOf(t, nil, []string{"canary-weight", "30"})
	const all = 1000
	canary := 0
	for range all {
		if in.to() == "next" {
			canary++
		}
	}
	if math.Abs(float64(canary)-0.3*all) > 3 {
		t.Errorf("the canary has got %d of %d requests, with a weight of 30", canary, all)
	}
}

// TestCanaryAlone checks that a canary without a main Ingress gets no requests, and adds no path or host. Its main
// Ingress may be created later, and be deleted.
func TestCanaryAlone(t *testing.T) {
	_, web := backend(t, "web")
	_, next := backend(t, "next")
	alone := class + service("web", web, "127.0.0.1") + service("next", next, "127.0.0.1") +
		annotated("canary", "shop.example", "next", "canary", "true", "canary-weight", "100")
	in := start(t, alone)
	in.expect("shop.example", "/", 404, "")
	if got := in.reasons("Ingress/default/canary"); strings.Join(got, " ") != "NoMainIngress" {
		t.Errorf("it is told %v", got)
	}
	in.write("main.yaml", rule("main", "shop.example", "Prefix", "/", "web"))
	in.becomes("shop.example", "/", 200, "next /")
	in.write("main.yaml", rule("main", "shop.example", "Exact", "/", "web"))
	in.becomes("shop.example", "/", 200, "web /")
	in.expect("shop.example", "/other", 404, "")
	in.remove("main.yaml")
	in.becomes("shop.example", "/", 404, "")
	// An Ingress with an invalid canary annotation gets no requests either.
	in.write("manifests.yaml", strings.Replace(alone, `canary: "true"`, `canary: "perhaps"`, 1))
	in.eventually("verdict", func() error {
		if got := in.reasons("Ingress/default/canary"); len(got) == 0 || got[0] != "InvalidAnnotation" {
			return fmt.Errorf("it is told %v", got)
		}
		return nil
	})
	in.expect("shop.example", "/", 404, "")
}

// TestCanaryWithoutEndpoints checks that requests go to the main Ingress if the canary has no endpoints.
func TestCanaryWithoutEndpoints(t *testing.T) {
	_, web := backend(t, "web")
	in := start(t, class+service("web", web, "127.0.0.1")+service("next", "1")+rule("main", "shop.example",
		"Prefix", "/", "web")+
		annotated("canary", "shop.example", "next", "canary", "true", "canary-weight", "100"))
	in.expect("shop.example", "/", 200, "web /")
	if message := in.message("Ingress/default/main", "NoEndpoints"); !strings.Contains(message, "default/web/80") {
		t.Errorf("the verdict is %q", message)
	}
}

// TestCanaryHasTheSettingsOfItsMain checks that the main Ingress's annotations apply to requests that go to the
// canary.
func TestCanaryHasTheSettingsOfItsMain(t *testing.T) {
	_, web := backend(t, "web")
	_, next := backend(t, "next")
	in := start(t, class+service("web", web, "127.0.0.1")+service("next", next, "127.0.0.1")+
		annotate(rule("main", "shop.example", "ImplementationSpecific", "/old/(.*)", "web"),
			"rewrite-target", "/new/$1")+
		annotate(rule("canary", "shop.example", "ImplementationSpecific", "/old/(.*)", "next"),
			"canary", "true", "canary-by-header", "X-Canary", "rewrite-target", "/mine",
			"whitelist-source-range", "192.0.2.1"))
	if got := in.askWith(in.client, "/old/x", "X-Canary", "always").body; got != "next /new/x" {
		t.Errorf("the canary answers %q", got)
	}
	in.expect("shop.example", "/old/x", 200, "web /new/x")
}

// TestCanarySession checks that a client with a session cookie stays with the Service that set it, regardless of the
// canary rules.
func TestCanarySession(t *testing.T) {
	in, manifests := canaryOf(t, []string{"affinity", "cookie"},
		[]string{"canary-weight", "100", "canary-by-header", "X-Canary"})
	session := func(headers ...string) string {
		cookie, _, _ := strings.Cut(in.askWith(in.client, "/", headers...).header.Get("Set-Cookie"), ";")
		if cookie == "" {
			t.Fatal("there is no session cookie")
		}
		return cookie
	}
	canary, main := session(), session("X-Canary", "never")
	for want, cookie := range map[string]string{"next": canary, "web": main} {
		for _, decides := range []string{"always", "never", "x"} {
			if got := in.to("Cookie", cookie, "X-Canary", decides); got != want {
				t.Errorf("with the session of %s, a request with the header %s goes to %s", want, decides, got)
			}
		}
	}
	// With "legacy" the canary has no sessions, so the rules apply to each request of its clients. Sessions of the main
	// Ingress stay.
	in.write("manifests.yaml", manifests("canary-by-header", "X-Canary", "affinity-canary-behavior", "legacy"))
	in.eventually("the canary without a session", func() error {
		got := in.askWith(in.client, "/", "X-Canary", "always")
		if set := got.header.Get("Set-Cookie"); set != "" {
			return fmt.Errorf("it sets %s", set)
		}
		return nil
	})
	if got := in.to("Cookie", canary, "X-Canary", "never"); got != "web" {
		t.Errorf("a request with an old session of the canary goes to %s", got)
	}
	if got := in.to("Cookie", main, "X-Canary", "always"); got != "web" {
		t.Errorf("a request with a session of the main Ingress goes to %s", got)
	}
}

// TestCanaryComesAndGoesWithoutEndingStreams checks that a request in progress stays at its endpoint when the canary
// is removed. A stream of an Ingress that is removed later shows when the drain time has passed.
func TestCanaryComesAndGoesWithoutEndingStreams(t *testing.T) {
	more := make(chan string, 1)
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") == "" {
			_, _ = io.WriteString(w, "next /")
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		last := more
		if r.Host == "gone.example" {
			last = nil
		}
		select {
		case text := <-last:
			_, _ = io.WriteString(w, text)
		case <-r.Context().Done():
		}
	})
	_, web := backend(t, "web")
	main := class + service("web", web, "127.0.0.1") + service("next", port, ip) + rule("main", "shop.example",
		"Prefix", "/", "web") + quickly
	gone := rule("gone", "gone.example", "Prefix", "/", "next")
	in := start(t, main+gone+annotated("canary", "shop.example", "next", "canary", "true", "canary-by-header",
		"X-Canary"), "configmap default/global")
	ctx, cancel := context.WithTimeout(t.Context(), fixture.Patience)
	defer cancel()
	stream := func(host string) io.Reader {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, in.origin(host), nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Canary", "always")
		request.Header.Set("Accept", "text/event-stream")
		response, err := in.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		return response.Body
	}
	stays, ends := stream("shop.example"), stream("gone.example")
	in.write("manifests.yaml", main+gone)
	in.eventually("the canary is removed", func() error {
		if got := in.to("X-Canary", "always"); got != "web" {
			return fmt.Errorf("a request goes to %s", got)
		}
		return nil
	})
	in.write("manifests.yaml", main)
	if _, err := io.ReadAll(ends); errors.Is(err, context.DeadlineExceeded) {
		t.Fatal("the stream of the removed Ingress does not end")
	}
	more <- "still there"
	if rest, err := io.ReadAll(stays); err != nil || string(rest) != "still there" {
		t.Errorf("the stream of the canary has ended with %q, %v", rest, err)
	}
}
