package health

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// method is the path of the Check method in gRPC's standard health checking protocol.
const method = "/grpc.health.v1.Health/Check"

const (
	// frameHead is the length of the prefix of each gRPC message: one byte for the compression flag and four bytes for
	// the message length.
	frameHead = 5
	// serviceField is the Protocol Buffers tag of the only field in the request, and statusField the tag of the only
	// field in the response.
	serviceField, statusField = 0x0a, 0x08
	serving                   = 1
)

// servings lists the names of the serving states. The index of a name is the state's number in the gRPC protocol.
var servings = []string{"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"}

// probeGRPC queries the gRPC health service of an endpoint. It returns nil if the service named in check.Path is
// serving. An empty name means the server as a whole.
func (c *Checker) probeGRPC(ctx context.Context, address string, check *ir.HealthCheck) error {
	service := strings.TrimPrefix(check.Path, "/")
	message := binary.AppendUvarint([]byte{serviceField}, uint64(len(service)))
	message = append(message, service...)
	frame := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, scheme(check)+"://"+address+method,
		bytes.NewReader(frame))
	if err != nil {
		return err
	}
	request.Host = check.Host
	request.Header = http.Header{"User-Agent": {userAgent}, "Content-Type": {"application/grpc"}, "Te": {"trailers"}}
	client, err := c.clientFor(check)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return err
	}
	return judgeGRPC(response, body)
}

func judgeGRPC(response *http.Response, body []byte) error {
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the response has status %d", response.StatusCode)
	}
	code := cmp.Or(response.Trailer.Get("Grpc-Status"), response.Header.Get("Grpc-Status"))
	switch code {
	case "0":
	case "5":
		return errors.New(
			"the server does not know the service: the path of the health check is the name of the service, or / " +
				"for the whole server")
	case "12":
		return errors.New("the server does not have the service grpc.health.v1.Health")
	default:
		return fmt.Errorf("the response has gRPC status %q", code)
	}
	if status := statusOf(body); status != serving {
		word := strconv.FormatUint(status, 10)
		if status < uint64(len(servings)) {
			word = servings[status]
		}
		return fmt.Errorf("the service is %s", word)
	}
	return nil
}

// statusOf returns the serving state in a response message. If the message is empty, it returns zero, because Protocol
// Buffers omit zero values.
func statusOf(body []byte) uint64 {
	if len(body) < frameHead+2 || body[0] != 0 || body[frameHead] != statusField {
		return 0
	}
	status, _ := binary.Uvarint(body[frameHead+1:])
	return status
}
