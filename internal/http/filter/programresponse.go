package filter

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// programResponse is a compiled ir.Return, or the redirect of a rewrite.
type programResponse struct {
	status int
	// text is the body of the response, or the URL of a redirect. hasText is false if there is no text, so that an
	// error page can replace the response.
	text    *nginx.Template
	hasText bool
	// rejection rejects the request with the status if there is no text.
	rejection *exchange.Failure
}

var errStatus = errors.New("the status of the response is not between 200 and 999")

func newProgramResponse(of *ir.Return) (*programResponse, error) {
	if of.Status < 200 || of.Status > 999 {
		return nil, errStatus
	}
	text, err := nginx.ParseTemplate(of.Text, nil)
	if err != nil {
		return nil, err
	}
	return &programResponse{of.Status, text, of.HasText && of.Text != "",
		exchange.Rejection(of.Status, "a snippet returns this status")}, nil
}

// lookup returns the function that looks up the variables of the text.
func (a *programResponse) lookup(x *exchange.Exchange) func(name string) string {
	if slices.Contains(redirects, a.status) {
		return escaping(x, nginx.EscapeGraphic)
	}
	return x.Variable
}

// redirects are the statuses for which the text of a return is a URL.
var redirects = []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
	http.StatusPermanentRedirect}

// closing are the statuses for which nginx closes the connection without a response: statuses of its own for "no
// response" and "the client has closed the connection", and a timeout.
var closing = []int{444, exchange.ClientGone, http.StatusRequestTimeout}

// errClosed lets the client notice only that its connection or stream was aborted. It is not logged, as for other
// requests that a filter rejects.
var errClosed = fmt.Errorf("%w: %w", exchange.ErrAborted, exchange.ErrRejected)

// respond responds to the request as nginx's directive return does.
func (r *programRun) respond() (bool, error) {
	x, status := r.x, r.response.status
	switch {
	case slices.Contains(redirects, status):
		return r.redirect()
	case status == http.StatusNoContent:
		return true, x.Respond(status, "")
	case !r.response.hasText && slices.Contains(closing, status):
		x.Status = status
		return false, errClosed
	case !r.response.hasText && status >= http.StatusBadRequest:
		return x.Reject(r.response.rejection)
	}
	return true, x.Respond(status, r.text, message.ContentType.Field(r.contentType()))
}

var errLocation = exchange.Fail(http.StatusInternalServerError,
	errors.New("the redirect of a program would contain a character that is not allowed in a header"))

// redirect redirects the client to the URL r.text. As in nginx, a path becomes a URL of the requested host.
func (r *programRun) redirect() (bool, error) {
	location := r.text
	if strings.HasPrefix(location, "/") && (!r.program.relative || strings.HasPrefix(location, "//")) {
		location = atHost(r.x, location)
	}
	if !httpguts.ValidHeaderFieldValue(location) {
		return false, errLocation
	}
	return true, r.x.Respond(r.response.status, "", message.Location.Field(location))
}

// contentType returns the Content-Type of a text. As in nginx, it depends on the extension of the path.
func (r *programRun) contentType() string {
	extension := strings.ToLower(path.Ext(message.CleanPath(r.x.Path)))
	if known := textTypes[extension]; known != "" {
		return known
	}
	return r.x.DefaultType()
}

// textTypes are the media types of nginx's mime.types whose content is text, by extension.
var textTypes = map[string]string{
	".html": "text/html", ".htm": "text/html", ".shtml": "text/html", ".css": "text/css", ".xml": "text/xml",
	".js": "application/javascript", ".atom": "application/atom+xml", ".rss": "application/rss+xml",
	".mml": "text/mathml", ".txt": "text/plain", ".jad": "text/vnd.sun.j2me.app-descriptor", ".wml": "text/vnd.wap.wml",
	".htc": "text/x-component", ".svg": "image/svg+xml", ".json": "application/json",
	".m3u8": "application/vnd.apple.mpegurl", ".ps": "application/postscript", ".rtf": "application/rtf",
	".kml": "application/vnd.google-earth.kml+xml", ".xhtml": "application/xhtml+xml",
	".xspf": "application/xspf+xml", ".pem": "application/x-x509-ca-cert", ".crt": "application/x-x509-ca-cert",
}
