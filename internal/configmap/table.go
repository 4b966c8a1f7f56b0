package configmap

import "github.com/k8singress/k8singress/internal/annotations"

// Key is one row of the table.
type Key struct {
	Name string
	// Doc says in one or two sentences what it does, Values what may stand in it.
	Doc, Values string
	Example     string
	Default     string
	// Global says that the key holds for the process as a whole, so that a class cannot have one of its own.
	Global bool
	// Own says that ingress-nginx has no such key.
	Own bool

	// parse reads a value. Without it the key means what the annotation of its name means.
	parse func(*Config, string) error
}

// Table lists the keys that work: first those that an Ingress can say otherwise. A new one is a line here, and a row in the file
// of its feature if there is no annotation of its name.
var Table = []Key{
	annotation("ssl-redirect"), annotation("force-ssl-redirect"), annotation("preserve-trailing-slash"),
	annotation("use-port-in-redirects"), httpRedirectCode, noTLSRedirectLocations,
	sslProtocols, annotation("ssl-ciphers"),
	annotation("load-balance"),
	annotation("upstream-hash-by"), annotation("upstream-hash-by-subset"), annotation("upstream-hash-by-subset-size"),
	annotation("service-upstream"),
	annotation("proxy-connect-timeout"), annotation("proxy-send-timeout"), annotation("proxy-read-timeout"),
	annotation("proxy-next-upstream"), annotation("proxy-next-upstream-timeout"), annotation("proxy-next-upstream-tries"),
	retryNonIdempotent,
	autoHTTPS,
	annotation("proxy-body-size"), annotation("proxy-request-buffering"), annotation("proxy-buffering"),
	annotation("proxy-http-version"),
	proxySSLLocationOnly,

	useHTTP2, sslRejectHandshake, sslSessionTickets,
	hsts, hstsMaxAge, hstsIncludeSubdomains, hstsPreload,
	useForwardedHeaders, computeFullForwardedFor, forwardedForHeader, enableRealIP, proxyRealIPCIDR,
	useProxyProtocol, proxyProtocolHeaderTimeout,
	upstreamKeepaliveConnections, upstreamKeepaliveTimeout,
	proxyStreamTimeout, proxyStreamNextUpstream, proxyStreamNextUpstreamTimeout, proxyStreamNextUpstreamTries, proxyStreamResponses,
	workerShutdownTimeout,
	allowCrossNamespaceResources,
	generateRequestID,
}

// annotation is a key that means for all Ingresses what the annotation of its name means for one.
func annotation(name string) Key {
	row := annotations.Find(name)
	if row == nil {
		panic("there is no annotation " + name)
	}
	return Key{Name: name, Doc: row.Doc, Values: row.Values, Example: row.Example, Default: row.Default}
}

func find(name string) *Key {
	for i := range Table {
		if Table[i].Name == name {
			return &Table[i]
		}
	}
	return nil
}
