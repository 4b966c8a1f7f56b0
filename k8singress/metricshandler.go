package k8singress

import (
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/encode"
	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/control/nginxmetrics"
	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/kube/client"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/process/exposition"
	"github.com/k8singress/k8singress/internal/process/logs"
	"github.com/k8singress/k8singress/internal/process/procstat"
)

func init() { caddy.RegisterModule(new(Metrics)) }

// Metrics serves the metrics of Caddy's registry, followed by metrics with the names of ingress-nginx if the option
// nginx_metrics is on. It writes the text format or the protobuf format, which Prometheus asks for. In contrast to
// Caddy's handler for metrics, it does not write the OpenMetrics format, in which the names of ingress-nginx's counters
// would be different. It writes metrics of routes while it reads them, so that a scrape with many routes needs little
// memory and time.
type Metrics struct {
	// registry has all metrics except the metrics of routes.
	registry prometheus.Gatherer
	app      *App
	log      *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (*Metrics) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.k8singress_metrics", New: func() caddy.Module { return new(Metrics) }}
}

// Provision gets the registry of the configuration, and the app whose state the metrics describe.
func (m *Metrics) Provision(ctx caddy.Context) error {
	app, err := appOf(ctx)
	if err != nil {
		return err
	}
	m.registry, m.app = app.engine.Table().Meters().Others(ctx.GetMetricsRegistry()), app
	m.log = logs.Logger("k8singress.metrics")
	return nil
}

// metricsFormats are the formats of a scrape, the preferred one first.
var metricsFormats = []expfmt.Format{
	expfmt.NewFormat(expfmt.TypeProtoDelim), expfmt.NewFormat(expfmt.TypeProtoText),
	expfmt.NewFormat(expfmt.TypeProtoCompact), expfmt.NewFormat(expfmt.TypeTextPlain),
}

// ServeHTTP writes all metrics. If that fails, it cuts the connection off, because Prometheus would take the end of the
// response for the end of the metrics.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	families, err := m.registry.Gather()
	if err != nil {
		return fmt.Errorf("reading the metrics: %w", err)
	}
	format := expfmt.NegotiateAccept(r.Header, metricsFormats...)
	w.Header().Set("Content-Type", string(format))
	w.Header().Add("Vary", "Accept, Accept-Encoding")
	if slices.Contains(encode.AcceptedEncodings(r, []string{"gzip"}), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		err = m.writeCompressed(w, format, families)
	} else {
		err = m.write(w, format, families)
	}
	if err != nil {
		m.log.Warn("the metrics could not be written; the connection is closed", zap.Error(err))
		panic(http.ErrAbortHandler)
	}
	return nil
}

// writeCompressed writes all metrics with gzip. After an error, it does not end the gzip stream.
func (m *Metrics) writeCompressed(w io.Writer, format expfmt.Format, families []*dto.MetricFamily) error {
	compressed, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if err := m.write(compressed, format, families); err != nil {
		return err
	}
	return compressed.Close()
}

// write writes families, followed by the metrics of routes and the metrics with the names of ingress-nginx.
func (m *Metrics) write(to io.Writer, format expfmt.Format, families []*dto.MetricFamily) error {
	encoder := expfmt.NewEncoder(to, format)
	for _, f := range families {
		if err := encoder.Encode(f); err != nil {
			return fmt.Errorf("writing %s: %w", f.GetName(), err)
		}
	}
	out, meters := exposition.New(to, format), m.app.engine.Table().Meters()
	meters.Write(out)
	if n := meters.Nginx(); n != nil {
		s := state(m.app)
		s.Write(out)
		n.Write(out, settings.NginxPrefix, s.Constant())
	}
	return out.Flush()
}

// state returns the state of the controller for the metrics of ingress-nginx.
func state(a *App) *nginxmetrics.State {
	s := &nginxmetrics.State{
		Class: a.config.ControllerName, Release: ownVersion(), Build: revision(), Applied: a.engine.Applied(),
		Lease: lease(&a.config), Leader: a.engine.Leads(), Orphans: a.engine.Orphans(),
		Certificates: a.engine.Certificates().Uses(), Connections: connections(),
	}
	s.Namespace, s.Pod = client.Pod()
	if a.config.AdmissionWebhook != nil {
		reviews := a.engine.Reviews()
		s.Reviews = &reviews
	}
	if p, err := procstat.Read(); err == nil {
		s.Process = &p
	}
	return s
}

// lease returns the name of the Lease in the flags of ingress-nginx, which queries may contain. The name of the Lease
// may have a prefix.
func lease(o *settings.Config) string {
	switch {
	case o.Source == nil || o.Source.Kubernetes == nil || o.Election == settings.ElectionOff:
		return ""
	case o.ElectionFallback != "":
		return o.ElectionFallback
	}
	return o.ElectionID
}

// revision returns the commit of the source code, or "" if the binary does not contain it.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

// connections returns the same numbers as statusPage.
func connections() nginxmetrics.Connections {
	clients := front.Process().Clients()
	ended := requests.ended.Load()
	begun := requests.begun.Load()
	return nginxmetrics.Connections{
		Active: clients.Used, Writing: begun - ended, Waiting: max(clients.Used-begun+ended, 0),
		Accepted: clients.Accepted, Handled: clients.Accepted - clients.Refused, Requests: begun,
	}
}

var (
	_ caddy.Provisioner           = (*Metrics)(nil)
	_ caddyhttp.MiddlewareHandler = (*Metrics)(nil)
)
