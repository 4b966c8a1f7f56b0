package snippets

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// Zones are the zones of limit_req and limit_conn, by their names.
type Zones struct {
	Requests    map[string]ir.RequestZone
	Connections map[string]ir.Zone
}

// zoneKey is the key of a zone, a template. finding is the index of the finding for the directive.
type zoneKey struct {
	template string
	finding  int
}

const (
	// bytesPerClient is the size of a client in a zone of nginx. minZone is the minimum size of a zone in nginx.
	bytesPerClient = 64
	minZone        = 32 << 10
	// maxLimit is the maximum of a rate, and of the parameters of limit_req.
	maxLimit = 1_000_000_000
)

// requestZone interprets limit_req_zone.
func (r *reader) requestZone(d *Directive) error {
	of := ir.RequestZone{}
	for _, arg := range d.Args[1:] {
		name, value, _ := strings.Cut(arg, "=")
		var err error
		switch name {
		case "zone":
			of.Name, of.MaxClients, err = readZone(value)
		case "rate":
			err = readRate(value, &of)
		default:
			err = fmt.Errorf("write zone=NAME:SIZE and rate=RATE, and not %s", nginx.Quote(arg))
		}
		if err != nil {
			return err
		}
	}
	if of.Name == "" {
		return errNoZone
	}
	if of.RequestsPerSecond+of.RequestsPerMinute == 0 {
		of.RequestsPerSecond = 1
	}
	of.Key = d.Args[0]
	if err := r.checkZone(&of.Zone); err != nil {
		return err
	}
	if r.zones.Requests == nil {
		r.zones.Requests = map[string]ir.RequestZone{}
	}
	r.zones.Requests[of.Name] = of
	return nil
}

// connectionZone interprets limit_conn_zone.
func (r *reader) connectionZone(d *Directive) error {
	value, found := strings.CutPrefix(d.Args[1], "zone=")
	if !found {
		return errNoZone
	}
	name, _, err := readZone(value)
	if err != nil {
		return err
	}
	of := ir.Zone{Name: name, Key: d.Args[0]}
	if err := r.checkZone(&of); err != nil {
		return err
	}
	if r.zones.Connections == nil {
		r.zones.Connections = map[string]ir.Zone{}
	}
	r.zones.Connections[name] = of
	return nil
}

// checkZone checks a zone, and writes its key in the form of ir.Zone.
func (r *reader) checkZone(of *ir.Zone) error {
	of.Key = lowerVariables(of.Key)
	if _, err := exchange.ParseTemplate(of.Key); err != nil {
		return fmt.Errorf("the key: %w", err)
	}
	if of.Key == "$binary_remote_addr" {
		of.Key = ""
	}
	_, counts := r.zones.Requests[of.Name]
	_, limits := r.zones.Connections[of.Name]
	if counts || limits {
		return fmt.Errorf("there is already a zone %s: use another name", nginx.Quote(of.Name))
	}
	r.keys = append(r.keys, zoneKey{of.Key, len(r.out.Findings) - 1})
	return nil
}

var errNoZone = errors.New("it needs a zone: write zone=NAME:SIZE, such as zone=clients:10m")

// readZone reads NAME:SIZE. It returns the number of clients that the zone may contain.
func readZone(text string) (name string, maxClients int, err error) {
	name, size, _ := strings.Cut(text, ":")
	n, err := nginx.Size(size)
	switch {
	case name == "", size == "":
		return "", 0, errNoZone
	case err != nil:
		return "", 0, err
	case n < minZone:
		return "", 0, fmt.Errorf("the size %s is too small: write at least 32k", size)
	}
	return name, int(n / bytesPerClient), nil
}

// readRate reads a rate, such as 10r/s or 30r/m. As in nginx, a number without a unit is a rate per second.
func readRate(text string, of *ir.RequestZone) error {
	number, perMinute := strings.CutSuffix(text, "r/m")
	if !perMinute {
		number = strings.TrimSuffix(text, "r/s")
	}
	n, err := nginx.Number(1, maxLimit)(number)
	if err != nil {
		return fmt.Errorf("the rate %s is not a number of requests per second or minute, such as 10r/s or 30r/m",
			nginx.Quote(text))
	}
	if of.RequestsPerSecond, of.RequestsPerMinute = n, 0; perMinute {
		of.RequestsPerSecond, of.RequestsPerMinute = 0, n
	}
	return nil
}

// limits returns the limits of the level that is being read.
func (r *reader) limits() *ir.ZoneLimits {
	if r.out.Limits == nil {
		r.out.Limits = &ir.ZoneLimits{}
	}
	return r.out.Limits
}

// limit interprets limit_req and limit_conn.
func (r *reader) limit(d *Directive) error {
	of := Zones{}
	if r.http != nil {
		of = r.http.Zones
	}
	if d.Name == "limit_conn" {
		return r.limitConnections(d, of.Connections)
	}
	return r.limitRequests(d, of.Requests)
}

func (r *reader) limitRequests(d *Directive, zones map[string]ir.RequestZone) error {
	of, name := ir.RequestLimit{}, ""
	for _, arg := range d.Args {
		parameter, value, _ := strings.Cut(arg, "=")
		var err error
		switch parameter {
		case "zone":
			name = value
		case "burst":
			of.Burst, err = nginx.Number(1, maxLimit)(value)
		case "delay":
			of.Undelayed, err = nginx.Number(1, maxLimit)(value)
		case "nodelay":
			of.Undelayed = maxLimit
		default:
			err = fmt.Errorf("write zone=NAME, burst=NUMBER, delay=NUMBER or nodelay, and not %s", nginx.Quote(arg))
		}
		if err != nil {
			return err
		}
	}
	of.Undelayed = min(of.Undelayed, of.Burst)
	var err error
	if of.Zone, err = find(zones, name, "limit_req_zone"); err != nil {
		return err
	}
	to := r.limits()
	if slices.ContainsFunc(to.Requests, func(o ir.RequestLimit) bool { return o.Zone.Name == name }) {
		return fmt.Errorf("the zone %s is used twice: remove one of the limits", nginx.Quote(name))
	}
	to.Requests = append(to.Requests, of)
	return r.countHeaders(1)
}

func (r *reader) limitConnections(d *Directive, zones map[string]ir.Zone) error {
	n, err := nginx.Number(1, math.MaxUint16)(d.Args[1])
	if err != nil {
		return err
	}
	zone, err := find(zones, d.Args[0], "limit_conn_zone")
	if err != nil {
		return err
	}
	to := r.limits()
	if slices.ContainsFunc(to.Connections, func(o ir.ConnectionLimit) bool { return o.Zone.Name == zone.Name }) {
		return fmt.Errorf("the zone %s is used twice: remove one of the limits", nginx.Quote(zone.Name))
	}
	to.Connections = append(to.Connections, ir.ConnectionLimit{Zone: zone, Max: n})
	return r.countHeaders(1)
}

// find returns a zone of limit_req or limit_conn. The error lists the zones that exist.
func find[T any](in map[string]T, name, directive string) (zone T, err error) {
	if zone, found := in[name]; found {
		return zone, nil
	}
	if name == "" {
		return zone, errors.New("it needs the name of a zone: write zone=NAME")
	}
	known := ""
	if len(in) > 0 {
		known = ", or use one of its zones: " + strings.Join(slices.Sorted(maps.Keys(in)), ", ")
	}
	return zone, fmt.Errorf("there is no zone %s: define it with %s in the ConfigMap key http-snippet%s",
		nginx.Quote(name), directive, known)
}

// limitStatus interprets limit_req_status and limit_conn_status.
func (r *reader) limitStatus(d *Directive) error {
	n, err := nginx.Number(400, 599)(d.Args[0])
	if err != nil {
		return err
	}
	if r.scope.context == inHTTP {
		return useKey(strings.ReplaceAll(d.Name, "_", "-") + "-code")
	}
	if d.Name == "limit_conn_status" {
		r.limits().ConnectionsStatus = n
	} else {
		r.limits().Status = n
	}
	return nil
}

// useKey returns the problem of a directive for which ingress-nginx has a key of the ConfigMap. Its configuration
// always contains the directive outside of servers, so nginx would refuse a second one.
func useKey(key string) error {
	return leftOut("ingress-nginx's configuration already contains it: use the ConfigMap key " + key)
}

// limitDryRun interprets limit_req_dry_run and limit_conn_dry_run.
func (r *reader) limitDryRun(d *Directive) error {
	on, to := isOn(d), &r.limits().DryRun
	if d.Name == "limit_conn_dry_run" {
		to = &r.limits().ConnectionsDryRun
	}
	*to = &on
	return nil
}

// within returns the limits of a level with what it inherits from an outer level. Both may be nil.
func within(own, outer *ir.ZoneLimits) *ir.ZoneLimits {
	if own == nil || outer == nil {
		return cmp.Or(own, outer)
	}
	whole := own.Within(outer)
	return &whole
}

// resolveZones sets the zones of h. It is called when the variables of h are known.
func (r *reader) resolveZones(h *HTTP) {
	for _, key := range r.keys {
		if err := h.CheckVariables(key.template); err != nil {
			r.refuse(key.finding, fmt.Errorf("the key: %w", err))
		}
	}
	h.Zones = r.zones
}

// refuse changes a finding to an error. It does nothing if err is nil.
func (r *reader) refuse(finding int, err error) {
	if err == nil {
		return
	}
	f := &r.out.Findings[finding]
	f.Class, f.Text = Unreadable, notValid(f.Directive, err)
}
