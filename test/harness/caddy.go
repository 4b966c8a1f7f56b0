package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Options configures a Caddy process. NewOptions returns the usual options.
type Options struct {
	// Name is the name of the folder for the Caddyfile and the log of the process.
	Name string
	// Admin, HTTP and HTTPS are the addresses on which the process listens.
	Admin, HTTP, HTTPS string
	// Lines are the lines of the global option k8singress.
	Lines []string
	// Global contains other global options. Sites contains the rest of the Caddyfile.
	Global, Sites string
	// Environment has additional environment variables in the form NAME=value.
	Environment []string
}

// NewOptions returns the options of a Caddy that serves the class nginx of the cluster. Processes that run at the same
// time must have different numbers; the first is 0.
func (c *Cluster) NewOptions(name string, number int, lines ...string) Options {
	address := func(port int) string { return "127.0.0.1:" + strconv.Itoa(port+number) }
	o := Options{Name: name, Admin: address(2019), HTTP: address(8080), HTTPS: address(8443)}
	o.Lines = append([]string{
		"kubeconfig " + c.AccountKubeconfig(), "ingress_class nginx", "http " + o.HTTP, "https " + o.HTTPS,
	}, lines...)
	elects := func(line string) bool { return line == "election off" || strings.HasPrefix(line, "election_id ") }
	if !slices.ContainsFunc(lines, elects) {
		o.Lines = append(o.Lines, "election_id "+accountLease)
	}
	return o
}

func (o Options) caddyfile() string {
	return "{\n\tadmin " + o.Admin + "\n\tmetrics\n\tk8singress {\n\t\t" + strings.Join(o.Lines, "\n\t\t") + "\n\t}\n" +
		o.Global + "}\n" + o.Sites
}

// Caddy is a running process. Stop or Kill ends it.
type Caddy struct {
	Options
	// Started is the start time of the process.
	Started time.Time

	cmd    *exec.Cmd
	folder string
	admin  *http.Client
	ended  chan struct{}
}

// StartCaddy starts a process without waiting until it is ready.
func (c *Cluster) StartCaddy(o Options) (*Caddy, error) {
	folder := filepath.Join(c.Folder, "caddy", o.Name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	file := filepath.Join(folder, "Caddyfile")
	if err := os.WriteFile(file, []byte(o.caddyfile()), 0o644); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(c.Programs.Caddy, "run", "--config", file, "--adapter", "caddyfile")
	cmd.Env = append(os.Environ(), "HOME="+folder, "XDG_DATA_HOME="+folder, "XDG_CONFIG_HOME="+folder)
	cmd.Env = append(cmd.Env, o.Environment...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting Caddy: %w", err)
	}
	caddy := &Caddy{Options: o, Started: started, cmd: cmd, folder: folder, ended: make(chan struct{})}
	caddy.admin = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	go func() {
		defer close(caddy.ended)
		_ = cmd.Wait()
	}()
	return caddy, nil
}

// Stop ends the process like Kubernetes, with SIGTERM, and waits for it.
func (c *Caddy) Stop() { c.end(syscall.SIGTERM) }

// Kill ends the process like a crash.
func (c *Caddy) Kill() { c.end(syscall.SIGKILL) }

func (c *Caddy) end(s syscall.Signal) {
	_ = c.cmd.Process.Signal(s)
	select {
	case <-c.ended:
	case <-time.After(20 * time.Second):
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
}

// ExitCode returns the exit code of the process. It returns -1 if the process was killed or is still running.
func (c *Caddy) ExitCode() int {
	if c.Alive() {
		return -1
	}
	return c.cmd.ProcessState.ExitCode()
}

// Alive reports whether the process is still running.
func (c *Caddy) Alive() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// Log returns the log of the process.
func (c *Caddy) Log() string {
	data, err := os.ReadFile(filepath.Join(c.folder, "log"))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// Memory returns a field of /proc/PID/status in bytes, such as VmRSS, or VmHWM for the peak.
func (c *Caddy) Memory(field string) (int64, error) { return memory(c.cmd.Process.Pid, field) }

// CPU returns the processor time that the process has used.
func (c *Caddy) CPU() (time.Duration, error) { return cpu(c.cmd.Process.Pid) }

// LiveHeap returns the size of the heap after a garbage collection, in bytes.
func (c *Caddy) LiveHeap(ctx context.Context) (int64, error) {
	var size int64
	err := c.get(ctx, "/debug/pprof/heap?gc=1&debug=1", func(body io.Reader) error {
		data, err := io.ReadAll(body)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(data)) {
			if number, found := strings.CutPrefix(line, "# HeapAlloc = "); found {
				size, err = strconv.ParseInt(strings.TrimSpace(number), 10, 64)
				return err
			}
		}
		return errors.New("the heap profile does not say how large the heap is")
	})
	return size, err
}

// Profile writes a Go profile, such as "heap?gc=1" or "profile?seconds=5", to a file.
func (c *Caddy) Profile(ctx context.Context, name, file string) error {
	return c.get(ctx, "/debug/pprof/"+name, func(body io.Reader) error {
		data, err := io.ReadAll(body)
		if err != nil {
			return err
		}
		return os.WriteFile(file, data, 0o644)
	})
}

// AwaitReady waits until all objects have been applied for the first time.
func (c *Caddy) AwaitReady(ctx context.Context) error {
	for {
		status, err := c.Status(ctx)
		if err == nil && status.Ready {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("status is %+v", status)
		}
		select {
		case <-c.ended:
			return errors.New("Caddy has ended")
		case <-ctx.Done():
			return fmt.Errorf("Caddy is not ready: %w", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Status is the response of GET /k8singress/status.
type Status struct {
	Ready      bool           `json:"ready"`
	Generation uint64         `json:"generation"`
	Leader     bool           `json:"leader"`
	Objects    map[string]int `json:"objects"`
}

// Status queries the admin API for the status.
func (c *Caddy) Status(ctx context.Context) (Status, error) {
	var s Status
	err := c.get(ctx, "/k8singress/status", func(body io.Reader) error { return json.NewDecoder(body).Decode(&s) })
	return s, err
}

// Verdict is one element in the response of GET /k8singress/objects.
type Verdict struct {
	Object struct {
		Kind, Namespace, Name string
	}
	Accepted bool
	Problems []Problem
}

// Problem is one problem of an object.
type Problem struct {
	Severity, Reason, Field, Message string
}

// Verdicts queries the admin API for the verdicts on all objects.
func (c *Caddy) Verdicts(ctx context.Context) ([]Verdict, error) {
	var v []Verdict
	err := c.get(ctx, "/k8singress/objects", func(body io.Reader) error { return json.NewDecoder(body).Decode(&v) })
	return v, err
}

// Metric returns the sum of a metric over its series with the given labels, in the form name="value". It returns 0
// without such series.
func (c *Caddy) Metric(ctx context.Context, name string, labels ...string) (float64, error) {
	var sum float64
	err := c.get(ctx, "/metrics", func(body io.Reader) error {
		data, err := io.ReadAll(body)
		for line := range strings.Lines(string(data)) {
			words := strings.Fields(line)
			lacks := func(label string) bool { return !strings.Contains(line, label) }
			if metric, _, _ := strings.Cut(line, "{"); len(words) < 2 || strings.Fields(metric)[0] != name ||
				slices.ContainsFunc(labels, lacks) {
				continue
			}
			value, err := strconv.ParseFloat(words[len(words)-1], 64)
			if err != nil {
				return err
			}
			sum += value
		}
		return err
	})
	return sum, err
}

func (c *Caddy) get(ctx context.Context, path string, read func(io.Reader) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.Admin+path, nil)
	if err != nil {
		return err
	}
	response, err := c.admin.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, response.Status)
	}
	return read(response.Body)
}
