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
	rejected("not a network", `{"rules": [{"network": "192.0.2.1"}]}`, `"192.0.2.1" is not a network`),
	rejected("no network", `{"rules": [{"allow": true}]}`, `"" is not a network`),
}
