package caddyfile

import (
	"errors"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/k8singress/k8singress/internal/model/settings"
)

// setAdmissionWebhook parses the option admission_webhook:
//
//	admission_webhook [<address>] {
//		certificate <file> <key file>
//		own         <configuration>
//	}
//
// The block contains exactly one of the two lines.
func setAdmissionWebhook(d *draft, l *line) error {
	if d.config.AdmissionWebhook != nil {
		return errors.New("is set twice: remove one of the two blocks")
	}
	w := &settings.AdmissionWebhook{}
	if len(l.args) > 0 {
		if err := webhookAddress(l.args[0]); err != nil {
			return err
		}
		w.Listen = l.args[0]
	}
	block := caddyfile.NewDispenser(l.tokens)
	block.Next()
	block.RemainingArgs()
	for block.NextBlock(0) {
		if err := webhookLine(w, block.Val(), block.RemainingArgs()); err != nil {
			return err
		}
	}
	d.config.AdmissionWebhook = w
	return w.Check()
}

func webhookAddress(s string) error {
	if s == "off" {
		return errors.New("\"off\" is not an address: remove the option to disable the webhook")
	}
	if a, err := caddy.ParseNetworkAddress(s); err == nil && a.PortRangeSize() > 1 {
		return fmt.Errorf("%q has more than one port: write one of them", s)
	}
	return listenAddress(s)
}

// webhookLine parses one line in the block of the option admission_webhook.
func webhookLine(w *settings.AdmissionWebhook, name string, args []string) error {
	switch {
	case name == "certificate" && len(args) == 2:
		if w.Certificate != "" {
			return errors.New("certificate is set twice: remove one of the two lines")
		}
		w.Certificate, w.Key = args[0], args[1]
	case name == "own" && len(args) == 1:
		if w.Configuration != "" {
			return errors.New("own is set twice: remove one of the two lines")
		}
		w.Configuration = args[0]
		return subdomain(args[0])
	case name == "certificate":
		return errors.New("certificate takes two arguments: write certificate <file> <key file>")
	case name == "own":
		return errors.New("own takes one argument: write own <configuration>, with the name of the " +
			"ValidatingWebhookConfiguration")
	default:
		return fmt.Errorf("there is no line %q in this block: write certificate or own", name)
	}
	return nil
}
