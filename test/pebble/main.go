// Pebble is the certificate authority of tests: Let's Encrypt's own, with a DNS server that finds every name on this
// machine, and with faults on demand. It ends when its standard input does.
//
// Its first line of output is JSON: the directory of the authority, the file with the certificate that it shows, and
// the address of its control, of which control.go has the paths. Pebble's own environment variables count.
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
