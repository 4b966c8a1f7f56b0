package engine_test

import (
	"fmt"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/report"
)

// picky is an Ingress with a list of ciphers of its own for each number below 64.
func picky(name string, number int) *networkingv1.Ingress {
	var list []string
	for i, cipher := range []string{
		"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384",
		"ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305",
	} {
		if number&(1<<i) != 0 {
			list = append(list, cipher)
		}
	}
	object := ingress(name, name+".example")
	object.Annotations = map[string]string{"nginx.ingress.kubernetes.io/ssl-ciphers": strings.Join(list, ":")}
	return object
}

// TestCiphersWithoutRoom holds that the Ingress is told whose ciphers are one list too many, and no other one, for as long as
// that is so.
func TestCiphersWithoutRoom(t *testing.T) {
	all := []kinds.Object{service(), addresses("192.0.2.1")}
	for i := 1; i <= 33; i++ {
		all = append(all, picky(fmt.Sprint("web", i), i))
	}
	s := newSource(all...)
	e := start(t, s)
	var told string
	e.eventually("one Ingress is told", func() bool {
		names := crowdedOut(e, t)
		told = strings.Join(names, " ")
		return len(names) == 1
	})
	other := 1
	if told == "web1" {
		other = 2
	}
	s.set(picky(told, other))
	e.eventually("nobody is told", func() bool { return len(crowdedOut(e, t)) == 0 })
}

// crowdedOut are the names of the Ingresses that are told.
func crowdedOut(e *running, t *testing.T) []string {
	t.Helper()
	var names []string
	for _, v := range e.Report().Verdicts {
		for _, p := range v.Problems {
			if p.Reason != report.QuotaExceeded {
				continue
			}
			if !strings.Contains(p.Message, v.Object.Name+".example") {
				t.Errorf("%s is told: %s", v.Object, p.Message)
			}
			names = append(names, v.Object.Name)
		}
	}
	return names
}
