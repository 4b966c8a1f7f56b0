package front_test

import (
	"bytes"
	"fmt"
	"runtime/pprof"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestServersForOldLimitsEnd checks that servers with old limits end with their last connection, and that no open
// connection is closed early. Each change of the limits starts new http.Servers for later connections.
func TestServersForOldLimitsEnd(t *testing.T) {
	address := fixture.Address(t)
	limited := func(seconds int) map[string]server {
		s := fronted(address, fmt.Sprint(seconds))
		s.more["idle_timeout"] = fmt.Sprint(seconds, "s")
		return map[string]server{"one": s}
	}
	start(t, limited(100))
	kept := dial(t, "tcp", address)
	kept.expectResponse(t, "100")
	const changes = 10
	for i := 1; i <= changes; i++ {
		if err := load(limited(100+i), "{}"); err != nil {
			t.Fatal(err)
		}
		c := dial(t, "tcp", address)
		c.expectResponse(t, fmt.Sprint(100+i))
		if i < changes {
			_ = c.Close()
		}
	}
	// For each set of limits there are two servers: one for HTTP/1.1 and one for HTTP/2.
	serversAre(t, 4)
	if last := kept.expectResponse(t, fmt.Sprint(100+changes)); last {
		t.Error("the server asks for another connection")
	}
	_ = kept.Close()
	serversAre(t, 2)
	dial(t, "tcp", address).expectResponse(t, fmt.Sprint(100+changes))
}

// serversAre waits until the number of http.Servers that wait for connections is want.
func serversAre(t *testing.T, want int) {
	t.Helper()
	fixture.Eventually(t, "servers of net/http", func() error {
		var all bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&all, 2); err != nil {
			return err
		}
		if got := bytes.Count(all.Bytes(), []byte("front.(*server).Accept(")); got != want {
			return fmt.Errorf("there are %d, want %d", got, want)
		}
		return nil
	})
}
