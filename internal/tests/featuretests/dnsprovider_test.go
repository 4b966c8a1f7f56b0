package featuretests

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/libdns/libdns"
)

func init() { caddy.RegisterModule(new(dnsProvider)) }

// dnsProvider writes to the zone of the test authority, as DNS provider modules write to their zones.
type dnsProvider struct {
	Control string `json:"control"`
}

func (*dnsProvider) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "dns.providers.featuretests", New: func() caddy.Module { return new(dnsProvider) }}
}

// UnmarshalCaddyfile parses the name of the provider and its address.
func (p *dnsProvider) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	d.AllArgs(&p.Control)
	return nil
}

// Provision replaces placeholders in the address, as the modules of DNS providers do.
func (p *dnsProvider) Provision(caddy.Context) error {
	p.Control = caddy.NewReplacer().ReplaceAll(p.Control, "")
	return nil
}

func (p *dnsProvider) AppendRecords(ctx context.Context, zone string, all []libdns.Record) ([]libdns.Record, error) {
	return all, p.send(ctx, http.MethodPut, zone, all)
}

func (p *dnsProvider) DeleteRecords(ctx context.Context, zone string, all []libdns.Record) ([]libdns.Record, error) {
	return all, p.send(ctx, http.MethodDelete, zone, all)
}

func (p *dnsProvider) send(ctx context.Context, method, zone string, all []libdns.Record) error {
	for _, record := range all {
		rr := record.RR()
		target := p.Control + "/txt/" + libdns.AbsoluteName(rr.Name, zone) + "?" +
			url.Values{"value": {rr.Data}}.Encode()
		request, err := http.NewRequestWithContext(ctx, method, target, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("the zone says %s", response.Status)
		}
	}
	return nil
}
