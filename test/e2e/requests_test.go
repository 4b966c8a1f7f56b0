package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/k8singress/k8singress/test/harness"
)

// reply is a response.
type reply struct {
	code int
	// pod is the name of the pod that responded. It is empty if the response came from the controller.
	pod    string
	header http.Header
}

// newTransport returns a transport that connects to one address for all hosts, and trusts only the certificates of
// pairs.
func newTransport(address string, pairs ...keyPair) *http.Transport {
	roots := x509.NewCertPool()
	for _, p := range pairs {
		roots.AppendCertsFromPEM(p.certificate)
	}
	dialer := net.Dialer{Timeout: deadline}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, address)
		},
		TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true,
	}
}

// ask sends a GET request and reads the whole response.
func ask(ctx context.Context, transport *http.Transport, url string) (reply, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return reply{}, err
	}
	return send(transport, request)
}

// send is like ask for any request.
func send(transport *http.Transport, request *http.Request) (reply, error) {
	client := &http.Client{
		Transport: transport, Timeout: deadline,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return reply{}, fmt.Errorf("reading the body: %w", err)
	}
	r := reply{code: response.StatusCode, header: response.Header}
	if response.StatusCode == http.StatusOK {
		var seen struct{ Pod string }
		if err := json.Unmarshal(body, &seen); err != nil {
			return r, fmt.Errorf("the body %.100q is not echo's: %w", body, err)
		}
		r.pod = seen.Pod
	}
	return r, nil
}

// once sends a GET request over a new connection.
func once(ctx context.Context, address, url string, pairs ...keyPair) (reply, error) {
	transport := newTransport(address, pairs...)
	transport.DisableKeepAlives = true
	return ask(ctx, transport, url)
}

// awaitCode waits until a path of a host returns a status code. If the code is 200, a pod of the Deployment must
// respond.
func (c *cluster) awaitCode(caddy *harness.Caddy, host, path string, code int, deployment string) {
	c.Helper()
	c.await(fmt.Sprintf("%d from http://%s%s %s", code, host, path, deployment), func() error {
		r, err := once(c.Context(), caddy.HTTP, "http://"+host+path)
		if err != nil {
			return err
		}
		if r.code != code || !strings.HasPrefix(r.pod, deployment) {
			return fmt.Errorf("answered %d, pod %q", r.code, r.pod)
		}
		return nil
	})
}

// awaitCertificate waits until a host has the certificate of pair.
func (c *cluster) awaitCertificate(caddy *harness.Caddy, host string, pair keyPair) {
	c.Helper()
	c.await("the certificate of "+host, func() error {
		r, err := once(c.Context(), caddy.HTTPS, "https://"+host+"/", pair)
		if err == nil && r.code != http.StatusOK {
			return fmt.Errorf("answered %d", r.code)
		}
		return err
	})
}

// awaitPods waits until exactly this number of pods respond in one series of requests.
func (c *cluster) awaitPods(caddy *harness.Caddy, host string, count int) {
	c.Helper()
	c.await(fmt.Sprintf("%d pods of %s", count, host), func() error {
		pods := map[string]bool{}
		for range 10 * count {
			r, err := once(c.Context(), caddy.HTTP, "http://"+host+"/")
			if err != nil {
				return err
			}
			if r.code != http.StatusOK {
				return fmt.Errorf("answered %d", r.code)
			}
			pods[r.pod] = true
		}
		if len(pods) != count {
			return fmt.Errorf("answered by %v", pods)
		}
		return nil
	})
}

// awaitPort waits until a TCP port leads to the HTTP port of a Deployment's pods.
func (c *cluster) awaitPort(port, deployment string) {
	c.Helper()
	c.await("TCP port "+port+" leads to "+deployment, func() error {
		r, err := once(c.Context(), "127.0.0.1:"+port, "http://tcp.test/")
		if err == nil && !strings.HasPrefix(r.pod, deployment) {
			return fmt.Errorf("answered by pod %q", r.pod)
		}
		return err
	})
}

// keyPair is a self-signed certificate with its key, as in a Secret.
type keyPair struct{ certificate, key []byte }

func (c *cluster) newPair(hosts ...string) keyPair {
	c.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	c.must(err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	c.must(err)
	template := &x509.Certificate{
		SerialNumber: serial, DNSNames: hosts, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	c.must(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	c.must(err)
	return keyPair{encode("CERTIFICATE", der), encode("PRIVATE KEY", private)}
}

func encode(kind string, der []byte) []byte {
	var text bytes.Buffer
	_ = pem.Encode(&text, &pem.Block{Type: kind, Bytes: der})
	return text.Bytes()
}
