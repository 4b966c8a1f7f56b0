package featuretests

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// unreachable returns the address of an endpoint that takes no connection and refuses none: its queue is full. So it is with
// the address of a pod that has gone.
func unreachable(t *testing.T) (ip, port string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	ip, port = "127.0.0.1", strconv.Itoa(name.(*syscall.SockaddrInet4).Port)
	for range 16 {
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(ip, port), 200*time.Millisecond)
		if err != nil {
			return ip, port
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Fatal("the queue is never full")
	return "", ""
}

// TestTheLastPodGoes: a request that is on its way to a pod which has gone is told so at once, and does not wait for the
// connect timeout. Of several, another one gets it, whatever its method.
func TestTheLastPodGoes(t *testing.T) {
	ip, port := unreachable(t)
	one := oneWith("proxy-connect-timeout: 9", "proxy-next-upstream: off")
	in := start(t, class+service("one", port, ip)+one)
	for _, way := range ways {
		t.Run(way+" way", func(t *testing.T) {
			in.write("manifests.yaml", class+service("one", port, ip)+one)
			in.eventually("the pod is there", func() error { return in.hasEndpoints() })
			answers, began := make(chan answer, 1), time.Now()
			go func() { answers <- in.send(http.MethodPost, "/", nil, byWay(way)...) }()
			in.write("manifests.yaml", class+service("one", port)+one)
			if got := await(t, "an answer", answers); got.status != http.StatusServiceUnavailable {
				t.Errorf("got %d", got.status)
			}
			took(t, "to be told", began, 0, 5*time.Second)
		})
	}
}

// TestConnectTimeoutOfFastCGI is 504 as for any other protocol.
func TestConnectTimeoutOfFastCGI(t *testing.T) {
	ip, port := unreachable(t)
	in := inFrontOf(t, ip, port, "backend-protocol: FCGI", "proxy-connect-timeout: 1", "proxy-next-upstream-tries: 1")
	if got := in.send(http.MethodGet, "/index.php", nil); got.status != http.StatusGatewayTimeout {
		t.Errorf("got %d", got.status)
	}
}

// hasEndpoints returns an error unless the Service of a.example has any.
func (in *ingress) hasEndpoints() error {
	in.Helper()
	if found := in.reasons("Ingress/default/a"); slices.Contains(found, "NoEndpoints") {
		return fmt.Errorf("there is %v", found)
	}
	return nil
}
