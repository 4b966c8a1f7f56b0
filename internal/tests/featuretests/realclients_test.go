package featuretests

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/daemons"
)

// TestRealClients checks common requests with the HTTP clients of curl, Python and Java. Each client prints the same:
// a line for each response, with its status and the relevant part of its body. All other tests use Go's client.
func TestRealClients(t *testing.T) {
	in := inFront(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, "/there", http.StatusFound)
		case "/big":
			_, _ = w.Write(pattern(3 << 20))
		default:
			fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, hash(body))
		}
	}, "proxy-body-size: 8m")
	file := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(file, pattern(1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	nothing, all := hash(nil), hash(pattern(1<<20))
	want := strings.Join([]string{
		"200 GET /1 " + nothing, "200 GET /2 " + nothing, "200 GET /3 " + nothing, "200 POST /known " + all,
		"200 POST /chunked " + all, "200 head",
		"302 /there", "200 3145728 bytes",
	}, "\n")
	before := in.handedOver()
	for name, printed := range map[string]func(t *testing.T) string{
		"curl":         func(t *testing.T) string { return in.curl(t, file, "http://", "--http1.1") },
		"curl, TLS":    func(t *testing.T) string { return in.curl(t, file, "https://", "--http1.1") },
		"curl, HTTP/2": func(t *testing.T) string { return in.curl(t, file, "https://", "--http2") },
		"Python":       func(t *testing.T) string { return in.script(t, python, "http", file) },
		"Python, TLS":  func(t *testing.T) string { return in.script(t, python, "https", file) },
		"Java": func(t *testing.T) string {
			return in.script(t, java, "HTTP_1_1", file)
		},
		"Java, HTTP/2 h2c": func(t *testing.T) string {
			return in.script(t, java, "HTTP_2", file)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := printed(t); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
	for reason, n := range in.handedOver() {
		if n != before[reason] {
			t.Errorf("%d were handed over because of %s", n-before[reason], reason)
		}
	}
}

// curl sends the requests with one curl process, so that connections are reused if possible.
func (in *ingress) curl(t *testing.T, file, scheme, version string) string {
	t.Helper()
	const status = "%{http_code} "
	address := map[string]string{"http://": in.http, "https://": in.https}[scheme]
	_, port, _ := strings.Cut(address, ":")
	origin := scheme + "a.example:" + port
	common := []string{"-sS", "-k", version, "--resolve", "a.example:" + port + ":127.0.0.1", "--max-time", "60"}
	var printed strings.Builder
	ask := func(arguments ...string) string {
		output, err := exec.CommandContext(t.Context(), daemons.Program(t, "curl", "curl"),
			append(common, arguments...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("curl %q: %v\n%s", arguments, err, output)
		}
		return string(output)
	}
	// The status follows the body.
	for line := range strings.Lines(ask("-w", " "+status+"\n", origin+"/1", origin+"/2", origin+"/3")) {
		fields := strings.Fields(line)
		fmt.Fprintln(&printed, fields[len(fields)-1], strings.Join(fields[:len(fields)-1], " "))
	}
	for _, c := range [][]string{{"/known"}, {"/chunked", "-H", "Transfer-Encoding: chunked"}} {
		fields := strings.Fields(ask(append(c[1:], "-w", " "+status, "-H", "Content-Type: x/y", "--data-binary",
			"@"+file, origin+c[0])...))
		fmt.Fprintln(&printed, fields[len(fields)-1], strings.Join(fields[:len(fields)-1], " "))
	}
	fmt.Fprintln(&printed, ask("-I", "-o", os.DevNull, "-w", status, origin+"/head")+"head")
	fmt.Fprintln(&printed, strings.Replace(ask("-o", os.DevNull, "-w", status+"%{redirect_url}", origin+"/redirect"),
		origin, "", 1))
	fmt.Fprint(&printed, ask("-o", os.DevNull, "-w", status+"%{size_download} bytes", origin+"/big"))
	return printed.String()
}

// scripted is a client in testdata: its interpreter, the interpreter's Debian package, and the file.
type scripted struct{ program, debianPackage, name string }

var (
	python = scripted{"python3", "python3", "client.py"}
	java   = scripted{"java", "default-jdk-headless", "Client.java"}
)

// script runs a client with the addresses, a word, and a file to send.
func (in *ingress) script(t *testing.T, by scripted, word, file string) string {
	t.Helper()
	path := filepath.Join("testdata", "clients", by.name)
	command := exec.CommandContext(t.Context(), daemons.Program(t, by.program, by.debianPackage), path, in.http,
		in.https, word, file)
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", by.name, err, output)
	}
	return strings.TrimSpace(string(output))
}
