package front

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"github.com/k8singress/k8singress/internal/http/errorbody"
	"github.com/k8singress/k8singress/internal/http/message"
)

var errPlainHTTP = errors.New("client sent an HTTP request to an HTTPS server")

// refusePlainHTTP responds with 400 to a client that has sent a request without TLS, which err, the error of its TLS
// handshake, tells. It returns false for other errors. The body contains the text of nginx's page, because clients may
// compare it. The request is not read, so there is no request ID.
func refusePlainHTTP(err error) bool {
	record := tls.RecordHeaderError{}
	if !errors.As(err, &record) || record.Conn == nil || !looksLikeHTTP(record.RecordHeader) {
		return false
	}
	e := errorbody.Error{Status: http.StatusBadRequest, Reason: "The plain HTTP request was sent to HTTPS port"}
	response := message.Response{Status: e.Status}
	body, _ := e.Begin(&response, &message.Request{})
	if string(record.RecordHeader[:]) == "HEAD " {
		body = nil
	}
	// The error is ignored, because the connection is closed anyway.
	_, _ = fmt.Fprintf(record.Conn, "HTTP/1.1 400 Bad Request\r\nContent-Type: %s\r\nContent-Length: %d\r\n"+
		"Connection: close\r\n\r\n%s", response.Fields.Get(message.ContentType), response.Length, body)
	return true
}

// looksLikeHTTP reports whether these bytes begin an HTTP request with a usual method.
func looksLikeHTTP(head [5]byte) bool {
	switch string(head[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "PATCH", "DELET", "OPTIO":
		return true
	}
	return false
}
