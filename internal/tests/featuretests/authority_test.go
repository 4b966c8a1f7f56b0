package featuretests

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/caddyserver/certmagic"

	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// The tests do not need to limit requests to their authority. certmagic is not in use yet.
func init() { certmagic.RateLimitEvents = 1000 }

// authority is a running certificate authority: Pebble, with faults on demand.
type authority struct {
	testing.TB
	Directory, Root, Control, DNS string
}

// pebble builds the authority once. Like the other tests' binaries, it is kept in the repository's folder .cache.
var pebble = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("K8SINGRESS_PEBBLE"); path != "" {
		return path, nil
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, ".cache", "test", "pebble")
	build := exec.Command("go", "build", "-o", path, "./pebble")
	build.Dir = filepath.Join(root, "test")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building Pebble: %w\n%s", err, out)
	}
	return path, nil
})

// newAuthority starts an authority that validates challenges at the ports of in. It rejects no nonces, unless
// environment enables that.
func newAuthority(in *ingress, environment ...string) *authority {
	in.Helper()
	path, err := pebble()
	if err != nil {
		in.Fatal(err)
	}
	_, httpPort, _ := net.SplitHostPort(in.http)
	_, tlsPort, _ := net.SplitHostPort(in.https)
	run := exec.Command(path, "-folder", in.TempDir(), "-http", httpPort, "-tls", tlsPort)
	run.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0", "PEBBLE_AUTHZREUSE=0")
	run.Env = append(run.Env, environment...)
	stdin, err := run.StdinPipe()
	if err != nil {
		in.Fatal(err)
	}
	stdout, err := run.StdoutPipe()
	if err != nil {
		in.Fatal(err)
	}
	if err := run.Start(); err != nil {
		in.Fatal(err)
	}
	in.Cleanup(func() {
		stdin.Close()
		_ = run.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		in.Fatal(err)
	}
	a := &authority{TB: in}
	if err := json.Unmarshal(line, a); err != nil {
		in.Fatal(err)
	}
	return a
}

// issuer returns the JSON of an issuer that uses the authority.
func (a *authority) issuer(more string) json.RawMessage {
	if more != "" {
		more = "," + more
	}
	return fmt.Appendf(nil, `{"module":"acme","ca":%q,"trusted_roots_pem_files":[%q]%s}`, a.Directory, a.Root, more)
}

// control sends a request to the control API of the authority, and returns the response body.
func (a *authority) control(method, path string, body any) []byte {
	a.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		a.Fatal(err)
	}
	request, err := http.NewRequestWithContext(a.Context(), method, a.Control+path, bytes.NewReader(data))
	if err != nil {
		a.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		a.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		a.Fatalf("%s %s: %s %s %v", method, path, response.Status, text, err)
	}
	return text
}

// taken lists the requests that an authority received, as defined in test/pebble.
type taken struct {
	Orders, Replacing map[string]int
	// Accounts has the contacts of each account.
	Accounts [][]string
}

func (a *authority) taken() taken {
	a.Helper()
	var all taken
	if err := json.Unmarshal(a.control(http.MethodGet, "/taken", nil), &all); err != nil {
		a.Fatal(err)
	}
	return all
}

// fault is a response that replaces the authority's own, as defined in test/pebble.
type fault struct {
	Path       string `json:"path,omitempty"`
	Name       string `json:"name,omitempty"`
	Times      int    `json:"times,omitempty"`
	Status     int    `json:"status,omitempty"`
	RetryAfter string `json:"retryAfter,omitempty"`
	Type       string `json:"type,omitempty"`
	Detail     string `json:"detail,omitempty"`
	// Hold is a delay of the authority's response in milliseconds.
	Hold int `json:"hold,omitempty"`
}

func (a *authority) fails(f fault) { a.Helper(); a.control(http.MethodPut, "/fault", f) }
func (a *authority) mends()        { a.Helper(); a.control(http.MethodDelete, "/fault", nil) }

// roots returns the root certificates that clients of the issued certificates trust.
func (a *authority) roots() *x509.CertPool {
	a.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(a.control(http.MethodGet, "/roots/0", nil)) {
		a.Fatal("the authority has no root")
	}
	return pool
}

// issuing runs the controller on the folder of manifests, with the issuers of the options and its own storage.
func (in *ingress) issuing(o settings.Config) {
	in.Helper()
	in.issuingFrom(o, map[string]any{"module": "file_system", "root": in.TempDir()})
}

func (in *ingress) issuingFrom(o settings.Config, storage any) {
	in.Helper()
	o.Source = &settings.Source{Manifests: &settings.Manifests{Dir: in.folder}}
	in.run(o, storage, nil)
}

// run runs Caddy with options, a storage, and a document if the options configure no source.
func (in *ingress) run(o settings.Config, storage any, live *document.Live) {
	in.Helper()
	o.Admin, o.HTTP, o.HTTPS = in.admin, []string{in.http}, []string{in.https}
	o.ReachAllow = []string{"127.0.0.0/8"}
	config := structure.Structure(o)
	config["storage"] = storage
	if live != nil {
		config["apps"].(map[string]any)["k8singress"].(map[string]any)["live"] = live
	}
	config["admin"] = map[string]any{"listen": in.admin, "config": map[string]any{"persist": false}}
	data, err := json.Marshal(config)
	if err != nil {
		in.Fatal(err)
	}
	in.reload(data)
	in.awaitReady()
}

// verified connects to a host as a client that trusts the authority, and returns the host's certificate.
func (in *ingress) verified(roots *x509.CertPool, host string) (*x509.Certificate, error) {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: deadline}, "tcp", in.https,
		&tls.Config{ServerName: host, RootCAs: roots})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0], nil
}

// trusted waits until a client that trusts the authority can connect to a host, and returns the host's certificate.
func (in *ingress) trusted(roots *x509.CertPool, host string) *x509.Certificate {
	in.Helper()
	var leaf *x509.Certificate
	in.eventually("a valid certificate for "+host, func() (err error) {
		leaf, err = in.verified(roots, host)
		return err
	})
	return leaf
}

// client returns an HTTP client that trusts the certificate of the authority's own API.
func (a *authority) client() *http.Client {
	a.Helper()
	data, err := os.ReadFile(a.Root)
	if err != nil {
		a.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(data)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
}
