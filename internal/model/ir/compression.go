package ir

// Compression configures the compression of responses. The zero value disables it, which is ingress-nginx's default.
type Compression struct {
	Gzip   Coding `json:"gzip,omitzero"`
	Brotli Coding `json:"brotli,omitzero"`
	// GzipDisable is a case-insensitive regular expression. Clients with a matching User-Agent get no gzip. If it is
	// empty, all clients can get gzip.
	GzipDisable string `json:"gzip_disable,omitempty"`
}

// Coding configures one compression algorithm. Zero fields use ingress-nginx's defaults.
type Coding struct {
	On bool `json:"on,omitempty"`
	// Level is the compression level. MinSize is the minimum size, in bytes, of a body that is compressed. A negative
	// value of either field means 0.
	Level   int `json:"level,omitempty"`
	MinSize int `json:"least,omitempty"`
	// Types lists the media types to compress besides text/html, in lower case. "*" means all types.
	Types []string `json:"types,omitempty"`
}

// These are ingress-nginx's defaults. GzipMinSize and BrotliMinSize are in bytes.
const (
	GzipLevel     = 1
	GzipMinSize   = 256
	BrotliLevel   = 4
	BrotliMinSize = 20
)

// GzipTypes and BrotliTypes list the media types that ingress-nginx compresses by default. They must not be modified.
var (
	GzipTypes = []string{
		"application/atom+xml", "application/javascript", "application/x-javascript", "application/json",
		"application/rss+xml",
		"application/vnd.ms-fontobject", "application/x-font-ttf", "application/x-web-app-manifest+json",
		"application/xhtml+xml",
		"application/xml", "font/opentype", "image/svg+xml", "image/x-icon", "text/css", "text/javascript",
		"text/plain", "text/x-component",
	}
	BrotliTypes = append([]string{"application/xml+rss"}, GzipTypes...)
)
