package errorbody

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/http/message"
)

const grpcMedia = "application/grpc"

var (
	grpcType    = message.ContentType.Field(grpcMedia)
	grpcStatus  = message.NewField("Grpc-Status", "")
	grpcMessage = message.NewField("Grpc-Message", "")
)

// IsGRPC reports whether a request is a gRPC call, whose errors are gRPC statuses. Calls are POST requests over HTTP/2
// or HTTP/3. With other requests, a client could make a shared cache store an error with the status 200. gRPC-Web is
// not included: its clients read the HTTP status.
func IsGRPC(r *message.Request) bool {
	if r.Major < 2 || r.Method != http.MethodPost {
		return false
	}
	media, _, _ := strings.Cut(r.Fields.Get(message.ContentType), ";")
	media = strings.Trim(media, " \t")
	if len(media) < len(grpcMedia) || !strings.EqualFold(media[:len(grpcMedia)], grpcMedia) {
		return false
	}
	return len(media) == len(grpcMedia) || media[len(grpcMedia)] == '+'
}

// The status codes of gRPC for HTTP errors.
const (
	grpcUnknown          = 2
	grpcPermissionDenied = 7
	grpcUnimplemented    = 12
	grpcInternal         = 13
	grpcUnavailable      = 14
	grpcUnauthenticated  = 16
)

// codeOf returns the gRPC status code that gRPC clients use for an HTTP status, according to the table in gRPC's
// doc/http-grpc-status-mapping.md.
func codeOf(status int) int {
	switch status {
	case http.StatusBadRequest:
		return grpcInternal
	case http.StatusUnauthorized:
		return grpcUnauthenticated
	case http.StatusForbidden:
		return grpcPermissionDenied
	case http.StatusNotFound:
		return grpcUnimplemented
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return grpcUnavailable
	}
	return grpcUnknown
}

// beginGRPC makes the response a gRPC response without messages ("Trailers-Only").
func (e *Error) beginGRPC(response *message.Response) {
	status, text := grpcStatus, grpcMessage
	status.Value = strconv.Itoa(codeOf(e.Status))
	text.Value = e.grpcText()
	response.Fields = append(response.Fields, grpcType, status, text)
}

// grpcText returns the message of the gRPC status. In its percent-encoding, only the percent sign needs an escape,
// because a request ID contains only printable ASCII.
func (e *Error) grpcText() string {
	text := title(strconv.Itoa(e.Status), http.StatusText(e.Status))
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	text += " (k8singress"
	if e.ID != "" {
		text += ", request ID " + e.ID
	}
	return strings.ReplaceAll(text+")", "%", "%25")
}
