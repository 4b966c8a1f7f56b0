package kubelet

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

const followInterval = 100 * time.Millisecond

// serve serves the part of the kubelet's API that kubectl logs, exec and port-forward use, on each node.
func (k *Kubelet) serve(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.serveLogs)
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", k.serveExec)
	mux.HandleFunc("/portForward/{namespace}/{pod}", k.servePortForward)
	server := &http.Server{Handler: mux, TLSConfig: k.TLS}
	for _, n := range k.nodes {
		err := n.namespace.Do(func() error {
			listener, err := net.Listen("tcp", fmt.Sprintf(":%d", Port))
			if err == nil {
				go func() { _ = server.ServeTLS(listener, "", "") }()
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("listening for the kubelet's API on %s: %w", n.name, err)
		}
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return nil
}

// serveLogs returns the log of a container's current or previous run.
func (k *Kubelet) serveLogs(w http.ResponseWriter, r *http.Request) {
	c, err := k.containerOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	query := r.URL.Query()
	c.mu.Lock()
	run := c.restarts
	c.mu.Unlock()
	if query.Get("previous") == "true" {
		run--
	}
	file, err := os.Open(c.logPath(run))
	if err != nil {
		http.Error(w, fmt.Sprintf("container %s has no such log", c.spec.Name), http.StatusBadRequest)
		return
	}
	defer file.Close()
	if lines, err := strconv.Atoi(query.Get("tailLines")); err == nil {
		if err := seekLines(file, lines); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.Copy(w, file)
	if query.Get("follow") == "true" {
		c.follow(r.Context(), w, file)
	}
}

// follow sends new lines of the log until the container has ended or the client has disconnected.
func (c *container) follow(ctx context.Context, w http.ResponseWriter, file *os.File) {
	p, err := c.current()
	if err != nil {
		return
	}
	for running := true; running; {
		running = p.running()
		if _, err := io.Copy(w, file); err != nil {
			return
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		if running && !sleep(ctx, followInterval) {
			return
		}
	}
}

// seekLines moves to the start of the last lines. It reads the whole file, since logs of tests are small.
func seekLines(file *os.File, lines int) error {
	data, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	start := len(bytes.TrimSuffix(data, []byte("\n")))
	for ; lines > 0 && start >= 0; lines-- {
		start = bytes.LastIndexByte(data[:start], '\n')
	}
	_, err = file.Seek(int64(start+1), io.SeekStart)
	return err
}

func (k *Kubelet) containerOf(r *http.Request) (*container, error) {
	worker, err := k.find(r.PathValue("namespace"), r.PathValue("pod"))
	if err != nil {
		return nil, err
	}
	return worker.container(r.PathValue("container"))
}
