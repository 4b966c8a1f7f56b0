package ir

// Compression is what compresses answers. The zero value is ingress-nginx's default, which compresses none.
type Compression struct {
	Gzip   Coding `json:"gzip,omitzero"`
	Brotli Coding `json:"brotli,omitzero"`
	// GzipDisable is a regular expression for the User-Agent of clients that get no gzip, in any case; empty is none.
	GzipDisable string `json:"gzip_disable,omitempty"`
}

// Coding is one way to compress. What is zero has ingress-nginx's default.
type Coding struct {
	On bool `json:"on,omitempty"`
	// Level is how hard it tries, and Least how many bytes a body has that is worth it; less than zero is 0.
	Level int `json:"level,omitempty"`
	Least int `json:"least,omitempty"`
	// Types are the media types that are compressed besides text/html, in lower case; "*" is all.
	Types []string `json:"types,omitempty"`
}

// The defaults of ingress-nginx.
const (
	GzipLevel   = 1
	GzipLeast   = 256
	BrotliLevel = 4
	BrotliLeast = 20
)

// GzipTypes and BrotliTypes are the types that ingress-nginx compresses where nothing else is said. Nobody may change them.
var (
	GzipTypes = []string{
		"application/atom+xml", "application/javascript", "application/x-javascript", "application/json", "application/rss+xml",
		"application/vnd.ms-fontobject", "application/x-font-ttf", "application/x-web-app-manifest+json", "application/xhtml+xml",
		"application/xml", "font/opentype", "image/svg+xml", "image/x-icon", "text/css", "text/javascript", "text/plain", "text/x-component",
	}
	BrotliTypes = append([]string{"application/xml+rss"}, GzipTypes...)
)
