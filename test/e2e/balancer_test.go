package e2e

import (
	"encoding/csv"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/k8singress/k8singress/test/harness"
)

// The addresses of the balancer, and the first of the ports at which it checks the health of the replicas.
const (
	balancerAddress, balancerStats = "127.0.0.1:9080", "127.0.0.1:9081"
	firstHealth                    = 10254
)

// replicaNames are the names in testdata/haproxy.cfg.
var replicaNames = [2]string{"first", "second"}

// TestReplicasBehindBalancer checks that no request fails while each of two replicas is restarted like in Kubernetes,
// behind a TCP balancer that uses their readiness.
func TestReplicasBehindBalancer(t *testing.T) {
	if _, err := exec.LookPath("haproxy"); err != nil {
		t.Skip("LEFT OUT: two replicas behind a TCP balancer: there is no haproxy; install Debian's package haproxy")
	}
	c := newCluster(t)
	c.deploy("web", 3)
	c.ingress("web", "web")
	c.awaitEndpoints("web", 3, 0)
	options, replicas := [2]harness.Options{}, [2]*harness.Caddy{}
	for i := range replicas {
		// The balancer needs 0.2 s on an idle machine.
		options[i] = c.options(i, fmt.Sprintf("health 127.0.0.1:%d", firstHealth+i), "shutdown_delay 3s")
		replicas[i] = c.caddy(options[i])
		c.awaitPods(replicas[i], c.host("web"), 3)
	}
	c.startBalancer(options)
	c.awaitUp(0, 1)

	b := c.startBarrage(balancerAddress, c.host("web"))
	for i := range replicas {
		b.slowAt(c, options[i].HTTP)
		c.checkEnds(replicas[i])
		c.awaitUp(1 - i)
		options[i].Name += "-again"
		replicas[i] = c.caddy(options[i])
		c.awaitUp(0, 1)
	}
	b.finish(c)
	for _, replica := range replicas {
		c.checkNoReload(replica)
	}
}

// checkEnds stops a replica with slow requests in progress. It checks that the process exits without an error, and not
// before these requests have ended.
func (c *cluster) checkEnds(replica *harness.Caddy) {
	c.Helper()
	begin := time.Now()
	replica.Stop()
	took := time.Since(begin).Round(time.Millisecond)
	c.Logf("Caddy %s ended after %v", replica.Name, took)
	if code := replica.ExitCode(); code != 0 {
		c.Errorf("Caddy %s ended with code %d", replica.Name, code)
	}
	if took < 8*time.Second {
		c.Errorf("Caddy %s ended after %v, before its slow requests", replica.Name, took)
	}
}

// startBalancer runs haproxy in the network of the cluster until the test ends.
func (c *cluster) startBalancer(replicas [2]harness.Options) {
	c.Helper()
	log, err := os.Create(filepath.Join(c.TempDir(), "haproxy.log"))
	c.must(err)
	haproxy := exec.Command("haproxy", "-db", "-f", "testdata/haproxy.cfg")
	haproxy.Env = append(os.Environ(),
		"BALANCER="+balancerAddress, "STATS="+balancerStats, "FIRST="+replicas[0].HTTP, "SECOND="+replicas[1].HTTP,
		fmt.Sprintf("FIRST_HEALTH=%d", firstHealth), fmt.Sprintf("SECOND_HEALTH=%d", firstHealth+1))
	haproxy.Stdout, haproxy.Stderr = log, log
	haproxy.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.must(haproxy.Start())
	c.Cleanup(func() {
		_ = haproxy.Process.Signal(syscall.SIGTERM)
		_ = haproxy.Wait()
		if text, _ := os.ReadFile(log.Name()); c.Failed() {
			c.Logf("log of haproxy:\n%s", text)
		}
		_ = log.Close()
	})
}

// awaitUp waits until the balancer sends connections to exactly these replicas.
func (c *cluster) awaitUp(replicas ...int) {
	c.Helper()
	want := map[string]bool{}
	for _, i := range replicas {
		want[replicaNames[i]] = true
	}
	c.await(fmt.Sprintf("the balancer uses %v", want), func() error {
		states, err := balancerStates()
		for name, up := range states {
			if up != want[name] {
				err = errors.Join(err, fmt.Errorf("up: %v", states))
			}
		}
		return err
	})
}

// balancerStates returns for each replica whether the balancer considers it ready.
func balancerStates() (map[string]bool, error) {
	client := &http.Client{Timeout: time.Second}
	response, err := client.Get("http://" + balancerStats + "/;csv")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	rows, err := csv.NewReader(response.Body).ReadAll()
	if err != nil {
		return nil, err
	}
	// The columns include the proxy, the server and, as the 18th, the state.
	const proxy, server, state = 0, 1, 17
	states := map[string]bool{}
	for _, row := range rows {
		if row[proxy] == "web" && row[server] != "FRONTEND" && row[server] != "BACKEND" {
			// "DOWN 1/2" and "UP 1/2" are states of a replica that is about to change.
			states[row[server]] = row[state] == "UP"
		}
	}
	if len(states) != len(replicaNames) {
		return nil, fmt.Errorf("the balancer knows %v", states)
	}
	return states, nil
}
