package mtls

import (
	"fmt"
	"net/http"

	"github.com/k8singress/k8singress/internal/http/message"
)

// Refusal is the response to a request that is rejected because of its client certificate.
type Refusal struct {
	Status int
	// Location is the URL to redirect the client to if Status is 302. It is empty for other statuses.
	Location string
	// CloseConn is true if the connection must be closed, so that the client opens a new one. This is necessary if the
	// connection was opened before the host requested certificates: the client can then no longer send a certificate on
	// it.
	CloseConn bool

	body string
}

// The responses of nginx.
var (
	noCertificate  = page(http.StatusBadRequest, "No required SSL certificate was sent", true)
	badCertificate = page(http.StatusBadRequest, "The SSL certificate error", true)
	forbidden      = page(http.StatusForbidden, "", false)
	unauthorized   = &Refusal{Status: http.StatusForbidden, body: "client certificate unauthorized"}
	// Misdirected is the response to a request on a connection that was opened for another host.
	Misdirected = page(http.StatusMisdirectedRequest, "", false)
)

// page returns a response whose body looks like nginx's error pages. If why is not empty, the page contains it as the
// reason.
func page(status int, why string, closeConn bool) *Refusal {
	heading := fmt.Sprintf("%d %s", status, http.StatusText(status))
	title, line := heading, ""
	if why != "" {
		title, line = fmt.Sprintf("%d %s", status, why), "<center>"+why+"</center>\r\n"
	}
	return &Refusal{Status: status, CloseConn: closeConn,
		body: "<html>\r\n<head><title>" + title + "</title></head>\r\n<body>\r\n<center><h1>" +
			heading + "</h1></center>\r\n" + line + "</body>\r\n</html>\r\n"}
}

// Body returns the body of the response.
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
