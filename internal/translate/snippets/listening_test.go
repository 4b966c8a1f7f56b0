package snippets_test

import (
	"encoding/json"
	"testing"

	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// TestListeningServers checks the ports and the names of servers in a text for all hosts, and what their locations
// inherit.
func TestListeningServers(t *testing.T) {
	h := snippets.ReadHTTP(`server { listen 2443 default_server; listen [::]:2443 ipv6only=on; listen *:2444 ssl http2;
		server_name _ .a.example *.B.example c.example.; allow 10.0.0.0/8; deny all; return 308 https://$host$late; }
		server { listen 18080; add_header A b; location = /status { stub_status on; } }
		map $host $late { default /; }`)
	if f := h.Closed(); f != nil {
		t.Fatal(f)
	}
	for _, f := range h.Findings {
		if f.Class == snippets.LeftOut {
			t.Error(f)
		}
	}
	if len(h.Servers) != 2 {
		t.Fatalf("there are %d servers: %v", len(h.Servers), h.Findings)
	}
	first, second := &h.Servers[0], &h.Servers[1]
	got, err := json.Marshal([]any{first.Listens, first.Names, second.Listens, second.Names})
	const want = `[[{"Port":2443,"TLS":false,"Default":true},{"Port":2444,"TLS":true,"Default":false}],` +
		`["","a.example","**.a.example","**.b.example","c.example"],` +
		`[{"Port":18080,"TLS":false,"Default":false}],null]`
	if err != nil || string(got) != want {
		t.Errorf("the servers are %s, %v; want %s", got, err, want)
	}
	checkInherited(t, first, second)
	for i := range h.Findings[1:] {
		if h.Findings[i+1].Line < h.Findings[i].Line {
			t.Error("the findings are not in the order of the lines")
		}
	}
}

// checkInherited checks what the locations of the two servers inherit.
func checkInherited(t *testing.T, first, second *snippets.HTTPServer) {
	t.Helper()
	if first.Program == nil || len(first.Locations) != 1 || len(first.Locations[0].Content.Access.Rules) != 2 {
		t.Errorf("the first server is %+v", first)
	}
	if l := second.Locations; second.Program != nil || len(l) != 2 || !l[0].Status || l[1].Status ||
		l[1].Match.Path != "/" || l[0].Content.Program.AddHeaders[0].Name != "A" {
		t.Errorf("the second server is %+v", second)
	}
}
