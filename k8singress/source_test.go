package k8singress_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// apiServer is an API server without objects. It records the requests.
type apiServer struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.URL.String())
		s.mu.Unlock()
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// source returns the JSON of the source, limited to one namespace.
func (s *apiServer) source(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf(
		`{"apiVersion":"v1","kind":"Config","current-context":"it","contexts":[{"name":"it",`+
			`"context":{"cluster":"it"}}],`+
			`"clusters":[{"name":"it","cluster":{"server":%q}}]}`, s.URL)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`,"source":{"kubernetes":{"kubeconfig":%q,"namespaces":["shop"]}}`, file)
}

func (s *apiServer) sawRequest(parts ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
asked:
	for _, url := range s.asked {
		for _, part := range parts {
			if !strings.Contains(url, part) {
				continue asked
			}
		}
		return nil
	}
	return fmt.Errorf("nobody has asked for %q, but for %q", parts, s.asked)
}

// TestReloadWithAnOptionOfTheSource checks that a change of an option on which the source depends creates a new source.
func TestReloadWithAnOptionOfTheSource(t *testing.T) {
	for option, want := range map[string][]string{
		`"configmap":"b/x"`:           {"/api/v1/namespaces/b/configmaps", "name%3Dx"},
		`"tcp_services":"b/x"`:        {"/api/v1/namespaces/b/configmaps", "name%3Dx"},
		`"udp_services":"b/x"`:        {"/api/v1/namespaces/b/configmaps", "name%3Dx"},
		`"publish_service":"b/x"`:     {"/api/v1/namespaces/b/services", "name%3Dx"},
		`"default_certificate":"b/x"`: {"/api/v1/namespaces/b/secrets", "name%3Dx"},
		`"election_id":"x"`:           {"/apis/coordination.k8s.io/v1/namespaces/", "/leases/x"},
		`"election_namespace":"b"`:    {"/apis/coordination.k8s.io/v1/namespaces/b/leases/"},
	} {
		t.Run(option, func(t *testing.T) {
			s := newAPIServer(t)
			source := s.source(t)
			p := start(t, socket(t), app(source))
			p.eventually("the source runs", func() error { return s.sawRequest("/namespaces/shop/secrets") })
			if err := p.reload(app(source+","+option), "", ""); err != nil {
				t.Fatal(err)
			}
			p.eventually("the option is followed", func() error { return s.sawRequest(want...) })
		})
	}
}

// TestReloadKeepsTheTables checks that a change of other options keeps the tables.
func TestReloadKeepsTheTables(t *testing.T) {
	source := followed(t.TempDir())
	p := start(t, socket(t), app(source))
	p.awaitReady()
	more := `,"ingress_class":"x","tcp_services":"a/b","default_certificate":"a/b",` +
		`"publish_address":["192.0.2.1"],"election_id":"x"`
	if err := p.reload(app(source+more), "", ""); err != nil {
		t.Fatal(err)
	}
	var status struct{ Ready bool }
	if p.decode("status", &status); !status.Ready {
		t.Error("the tables are built anew")
	}
}
