package annotations

import (
	"slices"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// TestPassthroughGuard checks which guards TLS connections must not bypass: those that reject requests whatever they
// contain.
func TestPassthroughGuard(t *testing.T) {
	set := func(pairs ...string) map[string]string {
		all := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			all[Key(pairs[i])] = pairs[i+1]
		}
		return all
	}
	list, password := []string{allowlistSourceRange.Name, "192.0.2.0/24"}, []string{"auth-type", "basic"}
	const invalid, maintenanceStep, access = "invalid access control", "maintenance", "access control"
	for name, test := range map[string]struct {
		set  map[string]string
		step string
		want ir.Guard
	}{
		"none":                 {set: set("enable-cors", "true", "rewrite-target", "/")},
		"a password":           {set: set(append(password, "limit-rps", "1", "auth-url", "http://auth/")...)},
		"a redirect":           {set: set("permanent-redirect", "https://new.example/")},
		"invalid":              {set("limit-rps", "many"), invalid, ir.AllRequests},
		"maintenance":          {set(maintenance.Name, "true"), maintenanceStep, ir.AllRequests},
		"ended maintenance":    {set: set(maintenance.Name, "false", maintenanceAllowlist.Name, "192.0.2.1")},
		"maintenance for some": {allowing("192.0.2.1"), maintenanceStep, ir.SomeClients},
		"an allowlist":         {set(list...), access, ir.SomeClients},
		"a denylist":           {set(denylistSourceRange.Name, "192.0.2.0/24"), access, ir.SomeClients},
		"all networks":         {set: set(allowlistSourceRange.Name, "0.0.0.0/0,::/0")},
		"a list or a password": {set(append(list, "auth-type", "basic", "satisfy", "any")...), access, ir.SomeClients},
		"a list and a limit":   {set(append(list, "limit-rps", "1")...), access, ir.SomeClients},
	} {
		s, problems := Parse(Settings{}, test.set)
		s.UsersSecret.Name = "users"
		step, got, temporary := s.PassthroughGuard()
		if step != test.step || got != test.want || temporary != (step == maintenanceStep) {
			t.Errorf("%s: %q %d, temporary %t, with the problems %v", name, step, got, temporary, problems)
		}
	}
}

// TestVoidWithPassthrough checks that only annotations without an effect on passed-through connections are listed.
func TestVoidWithPassthrough(t *testing.T) {
	got := VoidWithPassthrough(map[string]string{
		Key("ssl-passthrough"): "true", Key("enable-cors"): "true", Key("auth-type"): "basic", Key("app-root"): " ",
		Key("ssl-redirect"): "false", Key("load-balance"): "ewma", healthCheckPath.Name: "/", maintenance.Name: "false",
		maintenanceAllowlist.Name: "192.0.2.1", Key("proxy-buffers-number"): "4", Key("unknown"): "x",
		"enable-cors": "x", retryAfter.Name: "5",
	})
	if want := []string{retryAfter.Name, "auth-type", "enable-cors"}; !slices.Equal(got, want) {
		t.Errorf("without effect: %q, want %q", got, want)
	}
}

// TestPassthroughGuardOfSnippets checks which locations of a server-snippet TLS connections must not bypass. Locations
// that respond to all clients, or decide by what a request contains, do not count.
func TestPassthroughGuardOfSnippets(t *testing.T) {
	const admin = "location /admin of server-snippet"
	for text, test := range map[string]struct {
		step string
		want ir.Guard
	}{
		"deny all;": {serverPhase, ir.AllRequests},
		"if ($remote_addr = 192.0.2.1) { return 403; }":               {serverPhase, ir.SomeClients},
		"location /admin { deny all; }":                               {admin, ir.AllRequests},
		"location /admin { allow 192.0.2.0/24; deny all; }":           {admin, ir.AllRequests},
		"location /admin { return 403; }":                             {admin, ir.AllRequests},
		"location /admin { }":                                         {admin, ir.AllRequests},
		"location /admin { internal; }":                               {admin, ir.AllRequests},
		"location /admin { deny 192.0.2.1; proxy_pass http://web; }":  {admin, ir.SomeClients},
		"location /a { return 200 a; } location /admin { deny all; }": {admin, ir.AllRequests},
		"location /a { return 200 a; }":                               {},
		"location /a { return 301 /b; }":                              {},
		"location /a { if ($http_x) { return 403; } return 200 a; }":  {},
		"location /a { proxy_pass http://web; }":                      {},
		"location @a { deny all; }":                                   {},
	} {
		for _, shared := range []bool{false, true} {
			var s Settings
			if texts := &s.Asked.Snippets.Server; shared {
				texts.Shared = text
			} else {
				texts.Own = text
			}
			if step, got, _ := s.PassthroughGuard(); step != test.step || got != test.want {
				t.Errorf("%s: %q %d, want %q %d", text, step, got, test.step, test.want)
			}
		}
	}
}
