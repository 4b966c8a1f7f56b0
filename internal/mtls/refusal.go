package mtls

import (
	"fmt"
	"net/http"

	"github.com/k8singress/k8singress/internal/message"
)

// Refusal is the answer to somebody who is not let in.
type Refusal struct {
	Status int
	// Location is where the client is sent, with status 302.
	Location string
	// Leave ends the connection. One that was made before the host asked for certificates can show none.
	Leave bool

	body string
}

// The answers of nginx.
var (
	noCertificate  = page(http.StatusBadRequest, "No required SSL certificate was sent", true)
	badCertificate = page(http.StatusBadRequest, "The SSL certificate error", true)
	forbidden      = page(http.StatusForbidden, "", false)
	unauthorized   = &Refusal{Status: http.StatusForbidden, body: "client certificate unauthorized"}
	// Misdirected is for a request that came by a connection which was made for another host.
	Misdirected = page(http.StatusMisdirectedRequest, "", false)
)

// page is a page as nginx writes it.
func page(status int, why string, leave bool) *Refusal {
	heading := fmt.Sprintf("%d %s", status, http.StatusText(status))
	title, line := heading, ""
	if why != "" {
		title, line = fmt.Sprintf("%d %s", status, why), "<center>"+why+"</center>\r\n"
	}
	return &Refusal{Status: status, Leave: leave, body: "<html>\r\n<head><title>" + title + "</title></head>\r\n<body>\r\n<center><h1>" +
		heading + "</h1></center>\r\n" + line + "</body>\r\n</html>\r\n"}
}

// Body is what the answer says, and Fields are its fields.
func (f *Refusal) Body() string { return f.body }

// Fields returns the fields of the answer, but for those of the connection.
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
