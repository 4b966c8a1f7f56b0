package annotations

// Table lists the annotations that work, in the order in which a request meets them. A new one is a line here and a file
// of its own.
var Table = []Annotation{
	rewriteTarget,
	proxyConnectTimeout, proxySendTimeout, proxyReadTimeout, proxyNextUpstreamTries,
}
