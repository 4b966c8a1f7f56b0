package featuretests

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestExternalAuthRequest checks the method of the request to the service, and the URL in it to which the client should
// return.
func TestExternalAuthRequest(t *testing.T) {
	in, a := externalAuth(t, map[string][]string{
		"usual": {"auth-url", "AUTH"}, "method": {"auth-url", "AUTH", "auth-method", "POST"},
		"redirect": {"auth-url", "AUTH", "auth-request-redirect", "https://$host/back"},
	})
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for host, want := range map[string]string{
			"usual": "GET /x?y  ", "method": "POST /x?y /x?y " + in.either("http", "https"),
			"redirect": "GET https://redirect.example/back  ",
		} {
			a.answers(letIn)
			in.expect(host+".example", "/x?y", http.StatusOK, "web ")
			asked, _ := a.taken()
			if got := questions(asked); !slices.Equal(got, []string{want}) {
				t.Errorf("%s: the service is asked %q, want %q", host, got, want)
			}
		}
	})
}

// questions describes the requests that a service received, in the format that the annotations use.
func questions(asked []*http.Request) (all []string) {
	for _, q := range asked {
		all = append(all, strings.Join([]string{
			q.Method, q.Header.Get("X-Auth-Request-Redirect"), q.Header.Get("X-Original-Uri"), q.Header.Get("X-Scheme"),
		}, " "))
	}
	return all
}

// TestExternalAuthKeptFor checks that only responses with a status in auth-cache-duration are cached. Without the
// annotation, 401 is one of them.
func TestExternalAuthKeptFor(t *testing.T) {
	in, a := externalAuth(t, map[string][]string{
		"usual": {"auth-url", "AUTH", "auth-cache-key", "$http_x_key"},
		"some":  {"auth-url", "AUTH", "auth-cache-key", "$http_x_key", "auth-cache-duration", "200 403 10m"},
	})
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, c := range []struct {
			host          string
			status, asked int
		}{
			{"usual", 401, 1}, {"usual", 403, 2}, {"some", 401, 2}, {"some", 403, 1},
		} {
			a.answers(answersWith(c.status))
			for range 2 {
				got := in.sendBy(in.client, in.origin(c.host+".example")+"/", http.MethodGet, nil,
					fmt.Sprint("X-Key: ", in.version, c.status))
				if got.status != c.status {
					t.Errorf("%s: %d, want %d", c.host, got.status, c.status)
				}
			}
			if asked, _ := a.taken(); len(asked) != c.asked {
				t.Errorf("%s: two requests that get %d ask the service %d times, want %d", c.host, c.status,
					len(asked), c.asked)
			}
		}
	})
}

// TestExternalAuthConnections checks how many connections to the service sequential requests use, and when an idle one
// is closed.
func TestExternalAuthConnections(t *testing.T) {
	in, a := externalAuth(t, map[string][]string{
		"usual": {"auth-url", "AUTH/usual"}, "none": {"auth-url", "AUTH/none", "auth-keepalive", "0"},
		"two": {"auth-url", "AUTH/two", "auth-keepalive-requests", "2"},
	})
	for host, want := range map[string]int{"usual": 1, "none": 4, "two": 2} {
		a.answers(letIn)
		used := map[string]bool{}
		for range 4 {
			in.expect(host+".example", "/", http.StatusOK, "web ")
		}
		asked, _ := a.taken()
		for _, q := range asked {
			used[q.RemoteAddr] = true
		}
		if len(asked) != 4 || len(used) != want {
			t.Errorf("%s: %d questions come by %d connections, want 4 by %d", host, len(asked), len(used), want)
		}
	}
}

// TestExternalAuthIdle checks that an idle connection to the service is closed after auth-keepalive-timeout, long
// before the default.
func TestExternalAuthIdle(t *testing.T) {
	ended := make(chan struct{}, 1)
	service := httptest.NewUnstartedServer(http.HandlerFunc(letIn))
	service.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			ended <- struct{}{}
		}
	}
	service.Start()
	defer service.Close()
	in := inFront(t, func(http.ResponseWriter, *http.Request) {}, "auth-url: "+service.URL, "auth-keepalive-timeout: 1")
	in.expect("a.example", "/", http.StatusOK, "")
	begin := time.Now()
	await(t, "the end of the idle connection", ended)
	took(t, "it", begin, 0)
}
