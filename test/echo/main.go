// Echo is the backend in the pods of the tests. Its response contains the request as it was received, and the name of
// the pod.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/websocket"
)

// seen is the response body, as JSON.
type seen struct {
	Pod       string      `json:"pod"`
	Namespace string      `json:"namespace"`
	Method    string      `json:"method"`
	Host      string      `json:"host"`
	Path      string      `json:"path"`
	Query     string      `json:"query,omitempty"`
	Protocol  string      `json:"protocol"`
	Remote    string      `json:"remote"`
	Headers   http.Header `json:"headers"`
	Body      string      `json:"body,omitempty"`
	TLS       *seenTLS    `json:"tls,omitempty"`
}

type seenTLS struct {
	Version      string   `json:"version"`
	ServerName   string   `json:"serverName"`
	Protocol     string   `json:"protocol"`
	Certificates []string `json:"certificates,omitempty"`
}

// ready determines the response of /ready. POST /ready?value=false, or READY=false in the environment, makes it 503.
var ready atomic.Bool

func main() {
	httpAddress := flag.String("http", ":8080", "HTTP/1.1 and HTTP/2 without TLS, WebSocket, gRPC")
	httpsAddress := flag.String("https", ":8443", "the same with a self-signed certificate")
	streamAddress := flag.String("stream", ":9000", "TCP and UDP, answering each byte")
	flag.Parse()
	ready.Store(os.Getenv("READY") != "false")
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, *httpAddress, *httpsAddress, *streamAddress); err != nil {
		slog.Error("ending", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, plain, secure, stream string) error {
	if err := serveStreams(stream); err != nil {
		return err
	}
	server := newServer()
	failed := make(chan error, 2)
	go func() { failed <- listenHTTP(server, plain) }()
	go func() { failed <- listenHTTPS(server, secure) }()
	slog.Info("listening", "http", plain, "https", secure, "stream", stream)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		slog.Info("ending")
		return nil
	}
}

func newServer() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/", echo)
	mux.HandleFunc("/ready", readiness)
	mux.HandleFunc("/status/{code}", status)
	mux.HandleFunc("/delay/{seconds}", delay)
	mux.HandleFunc("/bytes/{count}", sized)
	mux.Handle("/ws", websocket.Server{Handler: func(conn *websocket.Conn) { _, _ = io.Copy(conn, conn) }})
	grpcServer := newGRPC()
	server := &http.Server{Protocols: new(http.Protocols)}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			grpcServer.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	return server
}

func listenHTTP(server *http.Server, address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return server.Serve(listener)
}

func listenHTTPS(server *http.Server, address string) error {
	certificate, err := selfSigned()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	secure := &http.Server{Handler: server.Handler, TLSConfig: &tls.Config{
		Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequestClientCert,
	}}
	return secure.ServeTLS(listener, "", "")
}

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"echo"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	answer := seen{
		Pod: os.Getenv("POD_NAME"), Namespace: os.Getenv("POD_NAMESPACE"),
		Method: r.Method, Host: r.Host, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery,
		Protocol: r.Proto, Remote: r.RemoteAddr, Headers: r.Header, Body: string(body),
	}
	if answer.Pod == "" {
		answer.Pod, _ = os.Hostname()
	}
	if r.TLS != nil {
		answer.TLS = &seenTLS{
			Version: tls.VersionName(r.TLS.Version), ServerName: r.TLS.ServerName, Protocol: r.TLS.NegotiatedProtocol,
		}
		for _, certificate := range r.TLS.PeerCertificates {
			answer.TLS.Certificates = append(answer.TLS.Certificates, certificate.Subject.String())
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func readiness(w http.ResponseWriter, r *http.Request) {
	if value := r.URL.Query().Get("value"); r.Method == http.MethodPost && value != "" {
		ready.Store(value == "true")
	}
	if !ready.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func status(w http.ResponseWriter, r *http.Request) {
	code, err := strconv.Atoi(r.PathValue("code"))
	if err != nil || code < 200 || code > 599 {
		code = http.StatusBadRequest
	}
	w.WriteHeader(code)
}

func delay(w http.ResponseWriter, r *http.Request) {
	seconds, _ := strconv.ParseFloat(r.PathValue("seconds"), 64)
	select {
	case <-time.After(time.Duration(seconds * float64(time.Second))):
		echo(w, r)
	case <-r.Context().Done():
	}
}

// sized responds with a number of zero bytes.
func sized(w http.ResponseWriter, r *http.Request) {
	count, _ := strconv.ParseInt(r.PathValue("count"), 10, 64)
	_, _ = io.CopyN(w, zeros{}, count)
}

// zeros is an endless reader of zero bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
