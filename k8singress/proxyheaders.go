package k8singress

import (
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/http/errorlog"
)

// failedProxyHeaders counts connections without a valid PROXY protocol header. The counter is shared by all
// configurations.
var failedProxyHeaders = prometheus.NewCounter(prometheus.CounterOpts{
	Name: "k8singress_proxy_header_failures_total",
	Help: "The number of connections of HTTP clients that were closed because their peer sent no valid PROXY " +
		"protocol header in time. The log has the address of the peer and the reason, at most once per second.",
})

const noProxyHeader = "closing a connection: its peer sent no valid PROXY protocol header, which use-proxy-protocol " +
	"requires. If the peer is a client and no load balancer, set proxy-real-ip-cidr to the networks of the load " +
	"balancers"

// proxyHeaderFailed counts and logs a connection without a valid PROXY protocol header. Like other failures that
// clients can cause, it is logged at most once per second.
func proxyHeaderFailed(log *zap.Logger, conn net.Conn, err error) {
	failedProxyHeaders.Inc()
	errorlog.New(log).Connection(zap.WarnLevel, noProxyHeader, zap.Stringer("client", conn.RemoteAddr()),
		zap.Stringer("address", conn.LocalAddr()), zap.String("error", errorlog.Shortened(err.Error())))
}
