package filter_test

var sourceRangesCases = []filterCase{
	{
		name: "allowed", settings: `{"allow": ["192.0.2.0/24", "198.51.100.7/32", "2001:db8::/32"]}`,
		requests: []requestCase{
			admitted("192.0.2.1"), admitted("192.0.2.255"), admitted("198.51.100.7"), admitted("::ffff:192.0.2.1"),
			admitted("2001:db8:ffff::1"), admitted("2001:db8::1%eth0"),
			outside("192.0.3.1"), outside("198.51.100.8"), outside("2001:db9::1"), outside("::1"), outside(unixSocket),
		},
	},
	{name: "denied", settings: `{"deny": ["192.0.2.0/24", "::/0"]}`, requests: []requestCase{
		admitted("192.0.3.1"), outside("192.0.2.1"), outside("2001:db8::1"), outside(unixSocket),
	}},
	{
		name: "allowed and denied", settings: `{"allow": ["192.0.2.0/24"], "deny": ["192.0.2.66/32"]}`,
		requests: []requestCase{
			admitted("192.0.2.1"), outside("192.0.2.66"), outside("192.0.3.1"),
		},
	},
	{name: "a host in a network", settings: `{"allow": ["192.0.2.77/24", "0.0.0.0/32"]}`, requests: []requestCase{
		admitted("192.0.2.1"), admitted("0.0.0.0"), outside("0.0.0.1"),
	}},
	{name: "everyone", settings: `{"allow": ["0.0.0.0/0", "::/0"]}`, requests: []requestCase{
		admitted("203.0.113.9"), admitted("2001:db8::1"), outside(unixSocket),
	}},
	{name: "an empty list", settings: `{"allow": []}`, requests: []requestCase{outside("192.0.2.1"), outside("::1")}},
	{name: "no lists", settings: `{}`, requests: []requestCase{
		admitted("192.0.2.1"), admitted("::1"), outside(unixSocket),
	}},
	rejected("not a network", `{"allow": ["192.0.2.1"]}`, `"192.0.2.1" is not a network`),
	rejected("a denied name", `{"deny": ["all"]}`, `"all" is not a network`),
}

// admitted returns a request that passes, and outside a request that is rejected because of the client's address.
func admitted(client string) requestCase {
	return requestCase{client: client, request: "GET http://shop.example/", next: same, response: "200"}
}

func outside(client string) requestCase {
	return requestCase{client: client, request: "GET http://shop.example/", response: "403"}
}
