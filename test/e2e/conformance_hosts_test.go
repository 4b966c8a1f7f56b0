package e2e

import "strings"

var hostRules = []sentence{
	{"host can be precise, which is a domain name of a network host", preciseHost},
	{"if host is precise, the request matches if the http host header is equal to it", equalHost},
	{"the : delimiter is not respected because ports are not allowed", hostWithPort},
	{"the wildcard character must appear by itself as the first DNS label and matches only a single label",
		wildcardLabel},
	{"a precise host comes before a wildcard", preciseBeforeWildcard},
	{"incoming requests are matched against the host before the rule value", hostBeforePath},
	{"several Ingresses may have rules for one host", sharedHost},
}

func preciseHost(f *conformance) {
	a, b := f.host("precise-a"), f.host("precise-b")
	f.rules("precise", []route{{a, prefix, "/", "one"}, {b, prefix, "/", "two"}})
	f.answers(
		answer{a, "/", "one"},
		answer{b, "/", "two"},
		answer{f.host("precise-c"), "/", nobody},
	)
}

func equalHost(f *conformance) {
	host := f.host("equal")
	f.rules("equal", []route{{host, prefix, "/", "one"}})
	f.answers(
		answer{host, "/", "one"},
		answer{strings.ToUpper(host), "/", "one"},
		answer{"sub." + host, "/", nobody},
		answer{"not" + host, "/", nobody},
		answer{f.host("equal.not"), "/", nobody},
		answer{"equal", "/", nobody},
	)
}

func hostWithPort(f *conformance) {
	host := f.host("port")
	f.rules("port", []route{{host, prefix, "/", "one"}})
	f.answers(answer{host, "/", "one"}, answer{host + ":80", "/", "one"}, answer{host + ":12345", "/", "one"})
}

// wildcardLabel checks the table in the documentation.
func wildcardLabel(f *conformance) {
	host := f.host("wild")
	f.rules("wild", []route{{"*." + host, prefix, "/", "one"}})
	f.answers(
		answer{"bar." + host, "/", "one"},
		answer{"BAR." + host, "/", "one"},
		answer{"baz.bar." + host, "/", nobody},
		answer{host, "/", nobody},
		answer{"." + host, "/", nobody},
	)
}

func preciseBeforeWildcard(f *conformance) {
	host := f.host("both")
	f.rules("both-wildcard", []route{{"*." + host, prefix, "/", "two"}, {"*." + host, prefix, "/long/path", "two"}})
	f.answers(answer{"bar." + host, "/", "two"})
	f.rules("both-precise", []route{{"bar." + host, prefix, "/short", "one"}})
	f.answers(
		answer{"bar." + host, "/short", "one"},
		answer{"foo." + host, "/short", "two"},
		// If the exact host has no matching path, the wildcard host is not used, even if it has a matching path.
		answer{"bar." + host, "/long/path", nobody},
	)
}

func hostBeforePath(f *conformance) {
	a, b := f.host("before-a"), f.host("before-b")
	f.rules("before", []route{{a, prefix, "/a", "one"}, {b, prefix, "/b", "two"}})
	f.answers(answer{a, "/a", "one"}, answer{b, "/b", "two"}, answer{a, "/b", nobody}, answer{b, "/a", nobody})
}

// sharedHost uses names whose order agrees with the ages, because of two Ingresses created in the same second, the one
// with the first name is older.
func sharedHost(f *conformance) {
	host := f.host("shared")
	f.rules("shared-older", []route{{host, prefix, "/first", "one"}, {host, prefix, "/same", "one"}})
	f.answers(answer{host, "/first", "one"})
	f.rules("shared-later", []route{{host, prefix, "/second", "two"}, {host, prefix, "/same", "two"}})
	f.answers(answer{host, "/second", "two"}, answer{host, "/first", "one"}, answer{host, "/same", "one"})
	f.awaitReason(f.caddy, "shared-later", "PathConflict")
	f.deleteIngress("shared-older")
	f.answers(answer{host, "/same", "two"}, answer{host, "/first", nobody})
}
