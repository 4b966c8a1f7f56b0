package mtls

import (
	"net/http"

	"github.com/k8singress/k8singress/internal/http/message"
)

// Refusal is the response to a request that is rejected because of its client certificate.
type Refusal struct {
	Status int
	// Reason says why the request is rejected. It is for the log.
	Reason string
	// Location is the URL to redirect the client to if Status is 302. It is empty for other statuses.
	Location string
	// CloseConn is true if the connection must be closed, so that the client opens a new one. This is necessary if the
	// connection was opened before the host requested certificates: the client can then no longer send a certificate on
	// it.
	CloseConn bool

	body string
}

// The responses to requests with a missing or an invalid client certificate.
var (
	noCertificate  = badRequest("No required SSL certificate was sent", "the client sent no certificate")
	badCertificate = badRequest("The SSL certificate error",
		"the client's certificate is not valid, or its issuer is not trusted")
	forbidden = &Refusal{Status: http.StatusForbidden, Reason: "the settings for client certificates are not valid, " +
		"so all clients are rejected: see the verdicts on the Ingress"}
	unauthorized = &Refusal{Status: http.StatusForbidden, body: "client certificate unauthorized",
		Reason: "auth-tls-match-cn does not match the subject of the client's certificate"}
	// Misdirected is the response to a request on a connection that was opened for another host.
	Misdirected = &Refusal{Status: http.StatusMisdirectedRequest, Reason: "the TLS connection was opened for another " +
		"host, which may have other rules about client certificates"}
)

// badRequest returns a response with nginx's error page for a client certificate. why is nginx's text for the reason.
func badRequest(why, reason string) *Refusal {
	return &Refusal{Status: http.StatusBadRequest, Reason: reason, CloseConn: true,
		body: "<html>\r\n<head><title>400 " + why + "</title></head>\r\n<body>\r\n" +
			"<center><h1>400 Bad Request</h1></center>\r\n<center>" + why + "</center>\r\n</body>\r\n</html>\r\n"}
}

// Body returns the body of the response. It is the same as in ingress-nginx, because clients may compare it. It is
// empty if the response is like other errors of the controller.
func (f *Refusal) Body() string { return f.body }

// Fields returns the header fields of the response, without connection-specific fields.
func (f *Refusal) Fields() message.Fields {
	var fields message.Fields
	if f.Location != "" {
		fields.Add(message.Location.Field(f.Location))
	}
	if f.body != "" {
		fields.Add(message.ContentType.Field("text/html"))
	}
	return fields
}
