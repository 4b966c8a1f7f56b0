package featuretests

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
)

// TestGlobalAuthKeys checks the other keys of external authentication for an Ingress without annotations: the request
// to the service, the sign-in redirect, the cookies, the cached responses, and the paths without authentication.
func TestGlobalAuthKeys(t *testing.T) {
	in, a := externalAuth(t, map[string][]string{"all": nil},
		"global-auth-url: AUTH", "global-auth-method: POST", "global-auth-request-redirect: https://$host/back",
		"global-auth-signin: https://login.example/", "global-auth-signin-redirect-param: to",
		`global-auth-always-set-cookie: "true"`, "global-auth-cache-key: $http_x_key",
		"global-auth-cache-duration: 200 403 10m", "no-auth-locations: /open")
	a.answers(answersWith(http.StatusUnauthorized))
	in.write("open.yaml", rule("open", "all.example", "Prefix", "/open", "web"))
	in.becomes("all.example", "/open", http.StatusOK, "web ")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		a.answers(letIn)
		got := in.get("all.example", "/missing")
		asked, _ := a.taken()
		want := []string{"POST https://all.example/back /missing " + in.either("http", "https")}
		if !slices.Equal(questions(asked), want) {
			t.Errorf("the service is asked %q, want %q", questions(asked), want)
		}
		if got.status != http.StatusNotFound || len(got.header["Set-Cookie"]) != 2 {
			t.Errorf("an error of the backend: %d with the cookies %q", got.status, got.header["Set-Cookie"])
		}
		in.expect("all.example", "/open", http.StatusOK, "web ")
		if now, _ := a.taken(); len(now) != len(asked) {
			t.Error("the service is asked about an open path")
		}

		a.answers(answersWith(http.StatusUnauthorized))
		in.leads(t, "all.example", "/x", http.StatusFound,
			"https://login.example/?to="+in.either("http", "https")+"://all.example%2Fx")
		in.keeps(a, http.StatusForbidden, 1)
		in.keeps(a, http.StatusUnauthorized, 2)
	})
}

// keeps sends two requests with a new key, and fails the test unless the service, which returns status, is called want
// times.
func (in *ingress) keeps(a *authService, status, want int) {
	in.Helper()
	a.answers(answersWith(status))
	for range 2 {
		in.sendBy(in.client, in.origin("all.example")+"/", http.MethodGet, nil,
			fmt.Sprint("X-Key: ", in.version, status))
	}
	if asked, seen := a.taken(); len(asked) != want || len(seen) != 0 {
		in.Errorf("two requests that get %d ask the service %d times, want %d, and the backend gets %d", status,
			len(asked), want, len(seen))
	}
}
