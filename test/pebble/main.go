// Pebble is the certificate authority for tests. It consists of Let's Encrypt's Pebble, a DNS server that resolves
// every name to this machine, and faults on demand. It ends when its standard input is closed.
//
// The first line of its output is a JSON object: the directory of the authority, the file with its server certificate,
// and the address of its control server, whose paths are in control.go. Pebble's own environment variables take effect.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
)

// where is the first line of output.
type where struct {
	Directory string `json:"directory"`
	Root      string `json:"root"`
	Control   string `json:"control"`
	// DNS is the address of the DNS server.
	DNS string `json:"dns"`
}

func main() {
	folder := flag.String("folder", ".", "where the certificate of the authority is written")
	httpPort := flag.Int("http", 80, "the port at which HTTP-01 challenges are asked for")
	tlsPort := flag.Int("tls", 443, "the port at which TLS-ALPN-01 challenges are asked for")
	validity := flag.Uint64("validity", 0, "how many seconds certificates are valid for; 0 is Pebble's default")
	flag.Parse()
	found, err := serve(context.Background(),
		options{folder: *folder, httpPort: *httpPort, tlsPort: *tlsPort, validity: *validity})
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(found)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}
