package mtls

import (
	"fmt"
	"net/http"

	"github.com/k8singress/k8singress/internal/http/message"
)

// Refusal is the response to a client that is not accepted.
type Refusal struct {
	Status int
	// Location is the target of a redirect with status 302. It is empty for other statuses.
	Location string
	// CloseConn means that the connection must be closed. A connection from the time before the host requested
	// certificates has none.
	CloseConn bool

	body string
}

// The responses of nginx.
var (
	noCertificate  = page(http.StatusBadRequest, "No required SSL certificate was sent", true)
	badCertificate = page(http.StatusBadRequest, "The SSL certificate error", true)
	forbidden      = page(http.StatusForbidden, "", false)
	unauthorized   = &Refusal{Status: http.StatusForbidden, body: "client certificate unauthorized"}
	// Misdirected rejects a request on a connection that was made for another host.
	Misdirected = page(http.StatusMisdirectedRequest, "", false)
)

// page returns an error page in the format of nginx.
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

// Fields returns the header fields of the response, except connection fields.
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
