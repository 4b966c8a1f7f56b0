package filter_test

var maintenanceCases = []filterCase{
	{name: "nobody is allowed", settings: `{}`, requests: []requestCase{
		closed("192.0.2.1"), closed("2001:db8::1"), closed("::1"), closed(unixSocket),
	}},
	{name: "an empty list", settings: `{"allow": []}`,
		requests: []requestCase{closed("192.0.2.1"), closed(unixSocket)}},
	{name: "some are allowed", settings: `{"allow": ["192.0.2.0/24", "2001:db8::/32"]}`, requests: []requestCase{
		admitted("192.0.2.1"), admitted("::ffff:192.0.2.1"), admitted("2001:db8:ffff::1"),
		closed("192.0.3.1"), closed("2001:db9::1"), closed(unixSocket),
	}},
	{name: "all are allowed", settings: `{"allow": ["0.0.0.0/0", "::/0"]}`, requests: []requestCase{
		admitted("203.0.113.9"), admitted("2001:db8::1"), closed(unixSocket),
	}},
	rejected("not a network", `{"allow": ["192.0.2.1"]}`, `"192.0.2.1" is not a network`),
}

// closed returns a request that is rejected because of the maintenance.
func closed(client string) requestCase {
	return requestCase{client: client, request: "GET http://shop.example/", response: "503"}
}
