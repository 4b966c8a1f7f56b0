package l4app

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/upstream/udp"
)

// failure is the reason why a connection was rejected or ended early.
type failure int

const (
	// tooMany means that the port already had its maximum number of open connections.
	tooMany failure = iota
	// notTrusted means that the peer is not allowed to send a PROXY protocol header.
	notTrusted
	// noHeader means that the connection does not start with the required PROXY protocol header.
	noHeader
	// noEndpoint means that no endpoint was available or could be reached.
	noEndpoint
	// idled means that no bytes were transferred during the idle timeout.
	idled
	// drained means that the connection was closed because its endpoint had been removed, and the drain time had
	// passed.
	drained
	// portClosed means that the connection was closed because its port had been closed, and the drain time had passed.
	portClosed
	// noClientHello means that the client did not send a complete TLS ClientHello in time, so it is not known to which
	// host it wanted to connect.
	noClientHello
	// noHandshake means that the TLS handshake with the client failed.
	noHandshake
	// noDescriptors means that no more file descriptors may be used by the port, or by all ports of its namespace.
	noDescriptors
	// loop means that this process itself opened the connection, so forwarding it could cause an endless loop.
	loop
	// internalError means that an internal error occurred, such as a panic.
	internalError
	failures
)

// reasons maps each failure to the value of the metric label "reason".
var reasons = [failures]string{
	"max_connections", "untrusted_peer", "proxy_header", "no_endpoint", "idle", "endpoint_gone", "port_gone",
	"client_hello", "tls_handshake",
	"no_descriptors", "loop", "internal",
}

// quiet is the minimum time between two log messages about the same kind of failure on a port. Clients can cause such
// failures as often as they like, and would otherwise flood the log.
const quiet = 10 * time.Second

// account holds the metrics of one port, or of the TLS passthrough connections of an HTTPS port. A change of the port's
// handlers does not reset the metrics. After the port is closed, its account is kept until its last connection has
// ended. If the port is opened again before that, it continues to use the same account.
type account struct {
	protocol, port string
	// users is the number of ports that use the account, including closed ports that still have open connections. It is
	// guarded by accounts.mu. kept is true if the account is never deleted.
	users int
	kept  bool

	opened, active atomic.Int64
	up, down       atomic.Uint64
	failed         [failures]atomic.Uint64
	warned         [failures]atomic.Int64
	unwarned       [failures]atomic.Uint64
	// traffic holds the metrics of a UDP port. For such a port, the fields above are not used, except failed.
	traffic udp.Traffic
}

// a.enter(limit) counts a connection as open until leave is called. If the number of open connections has reached
// limit, it returns false and does not count the connection. A limit of zero means no limit.
func (a *account) enter(limit int) bool {
	if n := a.active.Add(1); limit > 0 && n > int64(limit) {
		a.active.Add(-1)
		return false
	}
	a.opened.Add(1)
	return true
}

func (a *account) leave() { a.active.Add(-1) }

// fail counts a failure.
func (a *account) fail(f failure) { a.failed[f].Add(1) }

// warn counts a failure and logs it. It does not log the failure if it has logged a failure of the same kind within the
// last 10 seconds (see quiet).
func (a *account) warn(log *zap.Logger, f failure, message string, fields ...zap.Field) {
	a.fail(f)
	now, last := time.Now().UnixNano(), a.warned[f].Load()
	if now-last < int64(quiet) || !a.warned[f].CompareAndSwap(last, now) {
		a.unwarned[f].Add(1)
		return
	}
	log.Warn(message, append(fields, zap.Uint64("others_since_the_last_such_line", a.unwarned[f].Swap(0)))...)
}

// accounts holds the metrics of all ports, by port name. It implements prometheus.Collector.
type accounts struct {
	budget *budget.Budget
	mu     sync.Mutex
	all    map[string]*account
}

// a.use(name) returns the account of the port with this name, such as "tcp/5432". The account holds the metrics of the
// port, and is created if it does not exist. The caller must call release when the port no longer needs the account.
func (a *accounts) use(name string) *account {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.useLocked(name)
}

// keep returns the account of the port with this name, and never deletes it: connections may still be open when the
// Caddy configuration with their listener has ended, and the next listener on the port must continue the counters.
func (a *accounts) keep(name string) *account {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found := a.all[name]; found != nil && found.kept {
		return found
	}
	found := a.useLocked(name)
	found.kept = true
	return found
}

func (a *accounts) useLocked(name string) *account {
	found := a.all[name]
	if found == nil {
		protocol, port, _ := strings.Cut(name, "/")
		found = &account{protocol: protocol, port: port}
		a.all[name] = found
	}
	found.users++
	return found
}

func (a *accounts) release(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all[name].users--; a.all[name].users == 0 {
		delete(a.all, name)
	}
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("k8singress_stream_"+name, help, append([]string{"port", "protocol"}, labels...), nil)
}

var (
	connectionsTotal = describe("connections_total",
		"The number of connections that a TCP port has accepted, or of clients of a UDP port. Connections that a "+
			"limit rejected are not included.")
	connectionsActive = describe("connections_active",
		"The number of open connections of a TCP port, or of active clients of a UDP port.")
	bytesTotal = describe("bytes_total",
		"The number of bytes sent from clients to endpoints (direction in) and from endpoints to clients "+
			"(direction out).", "direction")
	failuresTotal = describe("failures_total",
		"The number of connections that were rejected or ended early, by reason.", "reason")
	datagramsTotal = describe("datagrams_total",
		"The number of datagrams sent from clients to endpoints (direction in) and from endpoints to clients "+
			"(direction out).", "direction")
	datagramsDropped = describe("datagrams_dropped_total",
		"The number of dropped datagrams, by reason. Datagrams that the network or the system drops without an "+
			"error are not included.", "reason")
	descriptorsUsed = prometheus.NewDesc("k8singress_stream_descriptors",
		"The number of file descriptors used by TCP and UDP ports and by passthrough, without pipes.", nil, nil)
	descriptorsLimit = prometheus.NewDesc("k8singress_stream_descriptors_limit",
		"The maximum of k8singress_stream_descriptors: 21/64 of the limit on open files.", nil, nil)
	sessionsEvicted = describe("sessions_evicted_total",
		"The number of clients of a UDP port whose session was ended to make room for a new client.")
)

// Describe implements prometheus.Collector.
func (*accounts) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		connectionsTotal, connectionsActive, bytesTotal, failuresTotal, datagramsTotal, datagramsDropped,
		sessionsEvicted, descriptorsUsed,
		descriptorsLimit,
	} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (a *accounts) Collect(to chan<- prometheus.Metric) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, each := range a.all {
		each.collect(to)
	}
	to <- prometheus.MustNewConstMetric(descriptorsUsed, prometheus.GaugeValue, float64(a.budget.Used()))
	to <- prometheus.MustNewConstMetric(descriptorsLimit, prometheus.GaugeValue, float64(a.budget.Limit()))
}

func (a *account) collect(to chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, value, append([]string{a.port, a.protocol}, labels...)...)
	}
	if a.protocol == string(ir.UDP) {
		collectTraffic(&a.traffic, send)
		// Send only the internal errors: collectTraffic has already sent the other failures of a UDP port, which are
		// counted per datagram.
		send(failuresTotal, prometheus.CounterValue, float64(a.failed[internalError].Load()), reasons[internalError])
		return
	}
	send(connectionsTotal, prometheus.CounterValue, float64(a.opened.Load()))
	send(connectionsActive, prometheus.GaugeValue, float64(a.active.Load()))
	send(bytesTotal, prometheus.CounterValue, float64(a.up.Load()), "in")
	send(bytesTotal, prometheus.CounterValue, float64(a.down.Load()), "out")
	for f, reason := range reasons {
		send(failuresTotal, prometheus.CounterValue, float64(a.failed[f].Load()), reason)
	}
}

func collectTraffic(t *udp.Traffic, send func(*prometheus.Desc, prometheus.ValueType, float64, ...string)) {
	send(connectionsTotal, prometheus.CounterValue, float64(t.Opened.Load()))
	send(connectionsActive, prometheus.GaugeValue, float64(t.Sessions.Load()))
	send(bytesTotal, prometheus.CounterValue, float64(t.In.Bytes.Load()), "in")
	send(bytesTotal, prometheus.CounterValue, float64(t.Out.Bytes.Load()), "out")
	send(datagramsTotal, prometheus.CounterValue, float64(t.In.Datagrams.Load()), "in")
	send(datagramsTotal, prometheus.CounterValue, float64(t.Out.Datagrams.Load()), "out")
	send(sessionsEvicted, prometheus.CounterValue, float64(t.Evicted.Load()))
	for why := range udp.Losses {
		send(datagramsDropped, prometheus.CounterValue, float64(t.Lost[why].Load()), why.String())
	}
}
