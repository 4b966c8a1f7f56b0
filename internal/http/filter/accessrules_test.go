package filter_test

var accessRulesCases = []filterCase{
	{
		name: "allowed before denied",
		settings: `{"rules": [{"network": "192.0.2.66/32"}, {"allow": true, "network": "192.0.2.0/24"},
			{"allow": true, "network": "2001:db8::/32"}, {"network": "all"}]}`,
		requests: []requestCase{
			admitted("192.0.2.1"), outside("192.0.2.66"), outside("192.0.3.1"), admitted("2001:db8::1"),
			outside("::1"), admitted("::ffff:192.0.2.1"), outside(unixSocket),
		},
	},
	{
		name:     "no rule matches",
		settings: `{"rules": [{"network": "192.0.2.0/24"}]}`,
		requests: []requestCase{outside("192.0.2.1"), admitted("192.0.3.1"), admitted("::1"), admitted(unixSocket)},
	},
	{
		name:     "the first match decides",
		settings: `{"rules": [{"allow": true, "network": "192.0.2.66/32"}, {"network": "192.0.2.0/24"}]}`,
		requests: []requestCase{admitted("192.0.2.66"), outside("192.0.2.67"), admitted("198.51.100.1")},
	},
	{
		name:     "all clients are allowed first",
		settings: `{"rules": [{"allow": true, "network": "all"}, {"network": "all"}]}`,
		requests: []requestCase{admitted("192.0.2.1"), admitted(unixSocket)},
	},
	{
		name:     "all networks are not all clients",
		settings: `{"rules": [{"network": "0.0.0.0/0"}, {"network": "::/0"}]}`,
		requests: []requestCase{outside("192.0.2.1"), outside("::1"), admitted(unixSocket)},
	},
	{name: "no rules", settings: `{"rules": []}`, requests: []requestCase{admitted("192.0.2.1")}},
	{
		name: "other methods",
		settings: `{"rules": [{"network": "192.0.2.1/32"}], "limit_except": {"methods": ["GET", "HEAD"],
			"rules": [{"allow": true, "network": "192.0.2.0/31"}, {"network": "all"}]}}`,
		requests: []requestCase{
			outside("192.0.2.1"), admitted("192.0.2.9"), withMethod("HEAD", "192.0.2.9", "200"),
			withMethod("POST", "192.0.2.1", "200"), withMethod("POST", "192.0.2.9", "403"),
			withMethod("get", "192.0.2.9", "403"), withMethod("PURGE", unixSocket, "403"),
		},
	},
	{
		name:     "no rules for other methods",
		settings: `{"rules": [{"network": "all"}], "limit_except": {"methods": ["GET"]}}`,
		requests: []requestCase{outside("192.0.2.1"), withMethod("POST", "192.0.2.1", "200")},
	},
	rejected("not a network for other methods", `{"limit_except": {"rules": [{"network": "a"}]}}`,
		`"a" is not a network`),
	rejected("not a network", `{"rules": [{"network": "192.0.2.1"}]}`, `"192.0.2.1" is not a network`),
	rejected("no network", `{"rules": [{"allow": true}]}`, `"" is not a network`),
}

// withMethod returns a request with a method whose response has this status.
func withMethod(method, client, status string) requestCase {
	r := requestCase{client: client, request: method + " http://shop.example/", response: status}
	if status == "200" {
		r.next = same
	}
	return r
}
