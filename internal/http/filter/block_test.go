package filter_test

import (
	"net/netip"
	"testing"

	"github.com/k8singress/k8singress/internal/http/filter"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

func TestBlock(t *testing.T) {
	const plain = "GET http://shop.example/"
	networks := ir.Block{Networks: []string{"192.0.2.0/24", "2001:db8::/32"}}
	agents := ir.Block{UserAgents: []string{"BadBot", "~*^curl/"}}
	referers := ir.Block{Referers: []string{"~spam"}}
	for name, c := range map[string]struct {
		block   ir.Block
		client  string
		request string
		refused bool
	}{
		"no lists":                    {ir.Block{}, "192.0.2.1", plain, false},
		"a client":                    {networks, "192.0.2.1", plain, true},
		"an IPv6 client":              {networks, "2001:db8::1", plain, true},
		"another client":              {networks, "192.0.3.1", plain, false},
		"a client without an address": {networks, "", plain, false},
		"a user agent":                {agents, "192.0.2.1", plain + " | User-Agent: BadBot", true},
		"part of a user agent":        {agents, "192.0.2.1", plain + " | User-Agent: BadBot/2", false},
		"a pattern":                   {agents, "192.0.2.1", plain + " | user-agent: CURL/8", true},
		"no user agent":               {agents, "192.0.2.1", plain, false},
		"a referer":                   {referers, "192.0.2.1", plain + " | Referer: https://spam.example/", true},
		"another referer":             {referers, "192.0.2.1", plain + " | Referer: https://SPAM.example/", false},
		"two referers":                {referers, "192.0.2.1", plain + " | Referer: a | Referer: spam", true},
		"a client and a user agent": {ir.Block{Networks: networks.Networks[:1], UserAgents: agents.UserAgents[:1]},
			"192.0.2.1", plain, true},
		"a client and a referer": {ir.Block{Networks: networks.Networks[:1], Referers: referers.Referers}, "192.0.2.1",
			plain, true},
		"an invalid network":           {ir.Block{Networks: []string{"all"}}, "192.0.2.1", plain, true},
		"an invalid pattern":           {ir.Block{UserAgents: []string{"~("}}, "192.0.2.1", plain, true},
		"an invalid pattern (Referer)": {ir.Block{Referers: []string{"~("}}, "", plain, true},
	} {
		t.Run(name, func(t *testing.T) {
			x, _ := exchangetest.New(t, c.request)
			client, _ := netip.ParseAddr(c.client)
			exchangetest.SetClient(x, client)
			if got := filter.NewBlock(c.block).Refuses(x); got != c.refused {
				t.Errorf("refused: %t, want %t", got, c.refused)
			}
		})
	}
}
