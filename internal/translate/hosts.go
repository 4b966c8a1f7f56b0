package translate

import (
	"strings"

	"github.com/k8singress/k8singress/internal/hosts"
)

// mergeHosts merges the hosts that were touched: the wildcards first, because the hosts below depend on whether they are
// secure, and are touched if that changes.
func (t *Translator) mergeHosts(c *change) {
	turned := set[string]{}
	for host := range c.hosts {
		if !strings.HasPrefix(host, "*.") {
			continue
		}
		before := t.secure(host)
		t.mergeHost(c, host)
		if t.secure(host) != before {
			turned[host] = struct{}{}
		}
	}
	t.touchBelow(c, turned)
	for host := range c.hosts {
		if !strings.HasPrefix(host, "*.") {
			t.mergeHost(c, host)
		}
	}
}

// touchBelow notes the hosts that wildcards stand for. It looks at all hosts, and is rarely called for.
func (t *Translator) touchBelow(c *change, wildcards set[string]) {
	if len(wildcards) == 0 {
		return
	}
	for host := range t.ofHost {
		if _, ok := wildcards[hosts.WildcardOf(host)]; ok {
			c.hosts[host] = struct{}{}
		}
	}
}

func (t *Translator) secure(host string) bool {
	m := t.merged[host]
	return m != nil && m.Secure
}

func (t *Translator) secureAbove(host string) bool {
	above := hosts.WildcardOf(host)
	return above != "" && t.secure(above)
}
