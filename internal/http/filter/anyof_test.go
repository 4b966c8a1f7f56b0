package filter_test

// These are filters of the cases below.
const (
	ofOffice  = `{"handler": "k8singress_source_ranges", "allow": ["192.0.2.0/24"]}`
	ofUsers   = `{"handler": "k8singress_basic_auth", "users": {"secret": "shop/users"}, "realm": "Shop"}`
	ofMissing = `{"handler": "k8singress_basic_auth", "users": {"secret": "shop/missing"}}`
	ofService = `{"handler": "k8singress_external_auth", "url": "http://auth.example/",
		"response_headers": ["X-User"]}`
	ofSignIn    = `{"handler": "k8singress_external_auth", "url": "http://auth.example/", "sign_in": "/login"}`
	homeAddress = "203.0.113.9"
	login       = `401 | WWW-Authenticate: Basic realm="Shop"`
	asked       = "GET http://auth.example:80/"
)

var anyOfCases = []filterCase{
	{
		name: "an address or a password", settings: `{"filters": [` + ofOffice + `, ` + ofUsers + `]}`,
		requests: []requestCase{
			passes("GET http://shop.example/"),
			passes("GET http://shop.example/ | " + wrongly),
			{client: homeAddress, request: "GET http://shop.example/ | " + asAlice, next: same, response: "200"},
			{client: homeAddress, request: "GET http://shop.example/ | " + wrongly, response: login},
			{client: homeAddress, request: "GET http://shop.example/", response: login},
		},
	},
	{
		name: "a password or an address", settings: `{"filters": [` + ofUsers + `, ` + ofOffice + `]}`,
		requests: []requestCase{
			{client: homeAddress, request: "GET http://shop.example/ | " + asAlice, next: same, response: "200"},
			{client: homeAddress, request: "GET http://shop.example/", response: login},
			// An accepted client is not asked for a password by an error of the backend.
			{request: "GET http://shop.example/", next: same, fails: 404, response: "404"},
		},
	},
	{
		name: "two addresses", settings: `{"filters": [` + ofOffice + `, {"handler": "k8singress_source_ranges",
			"allow": ["198.51.100.0/24"]}]}`,
		requests: []requestCase{
			{client: "198.51.100.1", request: "GET http://shop.example/", next: same, response: "200"},
			{client: homeAddress, request: "GET http://shop.example/", response: "403"},
		},
	},
	{name: "a missing Secret", settings: `{"filters": [` + ofOffice + `, ` + ofMissing + `]}`, requests: []requestCase{
		passes("GET http://shop.example/"),
		{client: homeAddress, request: "GET http://shop.example/ | " + asAlice, response: "503"},
	}},
	{
		name: "a failed filter ends it", settings: `{"filters": [` + ofMissing + `, ` + ofOffice + `]}`,
		requests: []requestCase{
			gets("GET http://shop.example/", "503"),
		},
	},
	{
		name: "a password or a service", settings: `{"filters": [` + ofUsers + `, ` + ofService + `]}`,
		requests: []requestCase{
			{
				// The service is not asked, so the backend must not get its field from the client.
				request:  "GET http://shop.example/ | X-User: mallory | x_user: mallory | " + asAlice,
				next:     "GET http://shop.example/ | " + asAlice,
				response: "200",
			},
			{
				request: "GET http://shop.example/ | X-User: mallory", next: "GET http://shop.example/ | X-User: bob",
				service: "200 | X-User: bob", asked: asked, response: "200",
			},
			{request: "GET http://shop.example/", service: "403", asked: asked, response: login},
			{
				request: "GET http://shop.example/", service: down, asked: asked,
				response: `500 | WWW-Authenticate: Basic realm="Shop"`,
			},
		},
	},
	{
		name: "a page or an address", settings: `{"filters": [` + ofSignIn + `, ` + ofOffice + `]}`,
		requests: []requestCase{
			{request: "GET http://shop.example/", service: "401", asked: asked, response: "302 | Location: /login"},
			{request: "GET http://shop.example/", service: "403", asked: asked, next: same, response: "200"},
		},
	},
	rejected("no filters", `{}`, "the list of filters is empty"),
	rejected("no list of filters", `{"filters": 1}`, "cannot unmarshal"),
	rejected("an unknown filter", `{"filters": [{"handler": "static_response"}]}`, `"static_response" is not a filter`),
	rejected("no filter", `{"filters": [1]}`, "cannot unmarshal"),
	rejected("an invalid filter", `{"filters": [{"handler": "k8singress_basic_auth"}]}`,
		"k8singress_basic_auth: no Secret"),
}
