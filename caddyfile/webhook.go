package caddyfile

import (
	"errors"
	"fmt"

	"github.com/caddyserver/caddy/v2"

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
	if err := parseBlock(l, w, webhookLines, removeOne); err != nil {
		return err
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

// webhookLines are the lines in the block of the option admission_webhook.
var webhookLines = map[string]func(*settings.AdmissionWebhook, []string) error{
	"certificate": func(w *settings.AdmissionWebhook, args []string) error {
		if len(args) != 2 {
			return errors.New("it takes two arguments: write certificate <file> <key file>")
		}
		w.Certificate, w.Key = args[0], args[1]
		return nil
	},
	"own": func(w *settings.AdmissionWebhook, args []string) error {
		if len(args) != 1 {
			return errors.New("it takes one argument: write own <configuration>, with the name of the " +
				"ValidatingWebhookConfiguration")
		}
		w.Configuration = args[0]
		return subdomain(args[0])
	},
}
