package filter_test

// The tests of package proxy check what endpoints get.
var withoutAuthorizationCases = []filterCase{
	{name: "the header stays for variables", settings: `{}`, requests: []requestCase{
		passes("GET http://shop.example/ | " + asAlice), passes("GET http://shop.example/"),
	}},
}
