package health_test

import (
	"crypto/tls"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	grpchealth "google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/upstream/health"
)

// TestGRPC checks a real gRPC server with the standard protocol, with and without TLS.
func TestGRPC(t *testing.T) {
	borrowed := httptest.NewTLSServer(nil)
	defer borrowed.Close()
	certificate := credentials.NewTLS(&tls.Config{Certificates: borrowed.TLS.Certificates})
	for name, options := range map[string][]grpc.ServerOption{"plain": nil, "TLS": {grpc.Creds(certificate)}} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server, said := grpc.NewServer(options...), grpchealth.NewServer()
			grpc_health_v1.RegisterHealthServer(server, said)
			go func() { _ = server.Serve(listener) }()
			defer server.Stop()
			address := listener.Addr().String()
			b := &backend{list: []ir.Endpoint{{Address: address}}, said: make(chan string, 10)}
			c := health.New(loopback(), nil)
			defer c.Close()
			asks := check()
			asks.GRPC, asks.TLS, asks.Path = true, name == "TLS", "/shop.Cart"
			said.SetServingStatus("shop.Cart", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
			c.Set("b", b, asks)
			b.await(t, address+" is ill")
			state(t, c, health.State{Endpoints: 1, Unhealthy: 1, Address: address,
				Reason: "the service is NOT_SERVING"})
			said.SetServingStatus("shop.Cart", grpc_health_v1.HealthCheckResponse_SERVING)
			b.await(t, address+" is well")
			state(t, c, health.State{Endpoints: 1})
			whole := *asks
			whole.Path = "/"
			c.Set("b", b, &whole)
			state(t, c, health.State{Endpoints: 1})
			other := *asks
			other.Path = "/healthz"
			c.Set("b", b, &other)
			b.await(t, address+" is ill")
		})
	}
}

// TestGRPCWithoutHealthService checks that a server without the health service is unhealthy, and that the reason names
// this.
func TestGRPCWithoutHealthService(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	b := &backend{list: []ir.Endpoint{{Address: listener.Addr().String()}}, said: make(chan string, 10)}
	c := health.New(loopback(), nil)
	defer c.Close()
	asks := check()
	asks.GRPC = true
	c.Set("b", b, asks)
	b.await(t, listener.Addr().String()+" is ill")
	await(t, "nobody says why", func() bool {
		s, _ := c.State("b")
		return strings.Contains(s.Reason, "grpc.health.v1.Health")
	})
}

// state waits until the checker returns this state.
func state(t *testing.T, c *health.Checker, want health.State) {
	t.Helper()
	await(t, "the state never is what it should be", func() bool {
		s, ok := c.State("b")
		return ok && s == want
	})
}
