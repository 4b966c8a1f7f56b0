package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// Pebble is a running certificate authority. Stop ends it.
type Pebble struct {
	// Directory is the ACME directory URL. Root is the file with the certificate of its HTTPS server. Control is the
	// address at which tests query what the authority did.
	Directory, Root, Control string

	stop func()
}

// Taken holds the number of orders for each host, and the contacts of each account.
type Taken struct {
	Orders   map[string]int
	Accounts [][]string
}

// StartPebble starts an authority that sends HTTP-01 and TLS-ALPN-01 challenges to these ports of this machine. It
// turns off the delays and random rejections with which Pebble tests clients.
func (c *Cluster) StartPebble(name string, httpPort, tlsPort int) (*Pebble, error) {
	folder := filepath.Join(c.Folder, "pebble", name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(c.Programs.Pebble, "-folder", folder, "-http", strconv.Itoa(httpPort), "-tls",
		strconv.Itoa(tlsPort))
	cmd.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0", "PEBBLE_AUTHZREUSE=0")
	cmd.Stderr = log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting Pebble: %w", err)
	}
	p := &Pebble{stop: func() { _ = errors.Join(stdin.Close(), cmd.Wait()) }}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, p)
	}
	if err != nil {
		p.stop()
		return nil, fmt.Errorf("Pebble does not say where it is; its log is %s: %w", log.Name(), err)
	}
	return p, nil
}

// Stop ends the authority.
func (p *Pebble) Stop() { p.stop() }

// Taken queries the orders and accounts from the authority.
func (p *Pebble) Taken(ctx context.Context) (Taken, error) {
	var t Taken
	data, err := p.get(ctx, "/taken")
	if err != nil {
		return t, err
	}
	return t, json.Unmarshal(data, &t)
}

// Issuer returns the root certificate of the issued certificates, in PEM.
func (p *Pebble) Issuer(ctx context.Context) ([]byte, error) { return p.get(ctx, "/roots/0") }

func (p *Pebble) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Control+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", path, response.Status)
	}
	return io.ReadAll(response.Body)
}
