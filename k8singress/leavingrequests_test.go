package k8singress_test

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// underway is the number of requests per protocol at the backend when the process is told to exit.
const underway = 7

// TestEndWithRequests checks that SIGTERM loses no request in progress, even without a shutdown delay.
func TestEndWithRequests(t *testing.T) {
	asked, release := make(chan string), make(chan struct{})
	o := &origin{secure: httptest.NewTLSServer(http.NotFoundHandler())}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		<-release
		_, _ = w.Write([]byte("at last"))
	}))
	t.Cleanup(o.secure.Close)
	t.Cleanup(o.Close)
	c := launch(t, o, "shutdown_timeout 10m")
	insecure := func() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }
	second := &http.Client{Transport: &http.Transport{TLSClientConfig: insecure(), ForceAttemptHTTP2: true}}
	answers := make(chan error, 3*underway)
	for range underway {
		for url, client := range map[string]*http.Client{
			"http://" + c.http + "/1":   {Transport: &http.Transport{}},
			"https://" + c.https + "/":  {Transport: &http.Transport{TLSClientConfig: insecure()}},
			"https://" + c.https + "/2": second,
		} {
			go func() {
				status, _, err := c.get(client, url)
				if errors.Is(err, errClosing) {
					err = nil
				}
				answers <- errors.Join(err, isOK(status))
			}()
		}
	}
	for range cap(answers) {
		fixture.Receive(t, "a request at the backend", asked)
	}
	c.terminate()
	c.becomes("no listener", refuses(c.http))
	c.becomes("no listener for TLS", refuses(c.https))
	close(release)
	for range cap(answers) {
		if err := fixture.Receive(t, "an answer", answers); err != nil {
			t.Error(err)
		}
	}
	c.endsWithout()
}
