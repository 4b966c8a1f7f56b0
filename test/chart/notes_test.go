package chart

import (
	"regexp"
	"strings"
	"testing"
)

// TestWarningsComeFirst checks the order of the NOTES: lost guards, rules without series, a hook without a shell, a
// missing image, and then everything else.
func TestWarningsComeFirst(t *testing.T) {
	notes := mustRender(t, values{
		"controller": values{
			"config":    values{"enable-modsecurity": "true", "no-such-key": "1"},
			"lifecycle": values{"preStop": values{"exec": values{"command": []any{"sh", "-c", "nginx -s quit"}}}},
			"metrics": values{"enabled": true, "prometheusRule": values{"enabled": true,
				"rules": []any{values{"alert": "Gone", "expr": "k8singress_nothing > 0"}}}},
			"extraModules": []any{values{"name": "lua"}},
		},
		"dhParam": "a",
	}).notes
	at := 0
	for _, says := range []string{
		"READ THIS FIRST", "enable-modsecurity", "extraModules", "no-such-key", "Gone: k8singress_nothing",
		"nginx -s quit", "There is no public image", "To see the addresses", "These values have no effect", "dhParam",
	} {
		next := strings.Index(notes[at:], says)
		if next < 0 {
			t.Fatalf("%q is not there, or too early:\n%s", says, notes)
		}
		at += next
	}
}

// TestHooks checks which preStop hooks remain, and what a leading sleep becomes.
func TestHooks(t *testing.T) {
	for _, c := range []struct {
		command []any
		kept    bool
		delay   string
	}{
		{[]any{"/wait-shutdown"}, true, "15s"},
		{[]any{"/usr/bin/caddy", "version"}, true, "15s"},
		{[]any{"/usr/bin/sleep", "30"}, false, "30s"},
		{[]any{"sh", "-c", "sleep 30"}, false, "30s"},
		{[]any{"/bin/bash", "-ec", " /bin/sleep 1m && nginx -s quit"}, false, "1m"},
		{[]any{"/usr/bin/env", "sh", "-c", "sleep 5\nnginx -s quit"}, false, "5s"},
		{[]any{"sh", "-c", "nginx -s quit; sleep 30"}, false, "15s"},
		{[]any{"sh", "-c", "sleep 30$(date +%s)"}, false, "15s"},
		{[]any{"sh", "-c", "sleep $DELAY"}, false, "15s"},
		{[]any{"sh"}, false, "15s"},
		{[]any{"{{ .Values.controller.name }}"}, true, "15s"},
		{nil, true, "15s"},
	} {
		hook := values{"preStop": values{"exec": values{"command": c.command}},
			"postStart": values{"exec": values{"command": []any{"/wait-shutdown"}}}}
		r := mustRender(t, values{"controller": values{"lifecycle": hook}})
		container := pods(t, r)[0].Spec.Containers[0]
		if kept := container.Lifecycle.PreStop != nil; kept != c.kept || container.Lifecycle.PostStart == nil {
			t.Errorf("%q: the hooks are %v", c.command, container.Lifecycle)
		}
		if caddyfile, _ := controller(t, r.objects(t)); !strings.Contains(caddyfile, "\tshutdown_delay "+c.delay+"\n") {
			t.Errorf("%q: there is no shutdown_delay %s in %s", c.command, c.delay, caddyfile)
		}
		if said := strings.Contains(r.notes, "has no shell"); said == c.kept {
			t.Errorf("%q: NOTES say %s", c.command, r.notes)
		}
	}
}

// TestPublicImage checks that the NOTES say that there is no public image, unless the values name one.
func TestPublicImage(t *testing.T) {
	for name, c := range map[string]struct {
		image values
		said  bool
	}{
		"defaults":            {values{}, true},
		"a repository":        {values{"repository": "registry.example.com/k8singress"}, false},
		"a path":              {values{"registry": "registry.example.com", "image": "edge/k8singress"}, false},
		"ingress-nginx":       {values{"repository": "registry.k8s.io/ingress-nginx/controller"}, true},
		"a tag of a registry": {values{"registry": "registry.example.com", "tag": "v1.14.0"}, true},
	} {
		notes := mustRender(t, values{"controller": values{"image": c.image}}).notes
		if said := strings.Contains(notes, "There is no public image yet"); said != c.said {
			t.Errorf("%s: said is %v", name, said)
		}
	}
}

// control matches characters that change what a terminal shows.
var control = regexp.MustCompile(`[\x00-\x09\x0b-\x1f\x7f-\x{9f}\x{202e}]`)

// TestNamesInNotesAreData checks that names in the NOTES are neither templates nor commands for the terminal, whatever
// their length.
func TestNamesInNotesAreData(t *testing.T) {
	long := strings.Repeat("a", 253)
	for name, shown := range map[string]string{
		"<script>alert(1)</script>": "<script>alert(1)</script>", `{{ fail "no" }}`: `{{ fail "no" }}`, long: long,
		"red\x1b[31m\u202etxt": "red?[31m?txt", "two\nlines": "two?lines", strings.Repeat("é", 400): "é...",
	} {
		script := strings.ReplaceAll(name, "{{", "{ {") // Hooks are templates.
		r := mustRender(t, values{
			name: "1", "controller": values{
				"config": values{name: "1"}, "ingressClassResource": values{"name": name, "enabled": false},
				"lifecycle": values{"preStop": values{"exec": values{"command": []any{"sh", "-c", script}}}},
				"metrics": values{"enabled": true, "prometheusRule": values{"enabled": true,
					"rules": []any{values{"alert": name, "expr": "k8singress_nothing > 0"}, name}}},
			},
		})
		for line, want := range map[string]string{
			"class": "of the class " + shown, "unknown value": "\n  " + shown,
			"rule": "\n  " + shown + ": k8singress_nothing\n", "key": "\n  controller.config." + shown + "\n",
		} {
			if !strings.HasSuffix(shown, "...") && !strings.Contains(r.notes, want) {
				t.Errorf("%s: there is no %q in\n%s", line, want, r.notes)
			}
		}
		if found := control.FindString(r.notes); found != "" || !strings.Contains(r.notes, shown) {
			t.Errorf("NOTES have %q:\n%s", found, r.notes)
		}
		for line := range strings.Lines(r.notes) {
			if len(line) > 700 {
				t.Errorf("a line has %d bytes", len(line))
			}
		}
	}
}
