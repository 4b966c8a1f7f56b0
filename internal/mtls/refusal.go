package mtls

import (
	"fmt"
	"net/http"
	"strconv"
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

// Write answers a request.
func (f *Refusal) Write(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	if f.Leave && r.ProtoMajor < 3 {
		// Go's HTTP/2 makes a GOAWAY of it.
		header.Set("Connection", "close")
	}
	if f.Location != "" {
		header.Set("Location", f.Location)
	}
	if f.body != "" {
		header.Set("Content-Type", "text/html")
		header.Set("Content-Length", strconv.Itoa(len(f.body)))
	}
	w.WriteHeader(f.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(f.body)) // Who has gone is not waited for.
	}
}
