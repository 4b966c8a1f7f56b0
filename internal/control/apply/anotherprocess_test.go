package apply_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/k8singress/k8singress/internal/control/apply"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// stranger is the admin API of another process. It records its requests, except those for the process token.
type stranger struct {
	*httptest.Server
	// process handles GET /k8singress/process.
	process http.HandlerFunc

	mu    sync.Mutex
	asked []string
}

func newStranger(t *testing.T, process http.HandlerFunc) *stranger {
	t.Helper()
	s := &stranger{process: process}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *stranger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/k8singress/process" {
		s.process(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	_, _ = io.WriteString(w, "{}")
}

// wasLeftAlone checks that the stranger's configuration was neither read nor changed.
func (s *stranger) wasLeftAlone(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) > 0 {
		t.Errorf("the other process got %q", s.asked)
	}
}

func (s *stranger) address() string { return s.Listener.Addr().String() }

// TestChangeLeavesAnotherProcessAlone checks that a client recognizes another process at the address, whatever that
// process responds, and does not change its configuration.
func TestChangeLeavesAnotherProcessAlone(t *testing.T) {
	for name, process := range map[string]http.HandlerFunc{
		"a Caddy without the route": http.NotFound,
		"the route, another text": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("A", 26))
		},
		"no text": func(http.ResponseWriter, *http.Request) {},
		"an endless text": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("A", 1<<20))
		},
		"another program": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/config/", http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStranger(t, process)
			changed, err := client(t, s.address()).Change(t.Context(), addServer)
			if changed || !errors.Is(err, apply.ErrAnotherProcess) || !strings.Contains(err.Error(), s.address()) {
				t.Errorf("changed is %v, error %v", changed, err)
			}
			s.wasLeftAlone(t)
		})
	}
}

// TestChangeWithoutAdmin checks that the error says what to set if no process listens at the address.
func TestChangeWithoutAdmin(t *testing.T) {
	for _, address := range []string{"127.0.0.1:" + fixture.Port(t), "unix/" + filepath.Join(t.TempDir(), "admin")} {
		changed, err := client(t, address).Change(t.Context(), addServer)
		if changed || !errors.Is(err, apply.ErrNoAdmin) || !strings.Contains(err.Error(), address) {
			t.Errorf("%s: changed is %v, error %v", address, changed, err)
		}
	}
}

// TestChangeChecksEachConnection checks that a client that has talked to its own process does not continue with another
// process. If several processes listen at one address, each new connection may reach another of them.
func TestChangeChecksEachConnection(t *testing.T) {
	// If Caddy listens on all interfaces, it accepts any Host header.
	port := fixture.Port(t)
	listen(t, ":"+port, "")
	s := newStranger(t, http.NotFound)
	shared := fixture.Listen(t)
	var mu sync.Mutex
	first := true
	fixture.Serve(shared, func(conn net.Conn) {
		mu.Lock()
		to := s.address()
		if first {
			to = "127.0.0.1:" + port
		}
		first = false
		mu.Unlock()
		oneAnswer(conn, to)
	})
	changed, err := client(t, shared.Addr().String()).Change(t.Context(), addServer)
	if changed || !errors.Is(err, apply.ErrAnotherProcess) {
		t.Errorf("changed is %v, error %v", changed, err)
	}
	s.wasLeftAlone(t)
}

// oneAnswer forwards data between a client and a server until the server has responded once.
func oneAnswer(client net.Conn, address string) {
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	go func() { _, _ = io.Copy(server, client) }()
	answer := make([]byte, 64<<10)
	n, err := server.Read(answer)
	if err == nil {
		_, _ = client.Write(answer[:n])
	}
}
