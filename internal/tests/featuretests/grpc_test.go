package featuretests

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// echo is a gRPC service that sends messages back: Say once, Tell three times, Talk for each message. It responds to
// the message "fail" with an error. Talk sends a last message after the client has closed its side.
type echo struct{ ended chan error }

var echoService = grpc.ServiceDesc{
	ServiceName: "test.Echo", HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Say", Handler: sayBack}},
	Streams: []grpc.StreamDesc{
		{StreamName: "Tell", ServerStreams: true, Handler: func(_ any, s grpc.ServerStream) error {
			var in wrapperspb.StringValue
			if err := s.RecvMsg(&in); err != nil {
				return err
			}
			for i := range 3 {
				if err := s.SendMsg(wrapperspb.String(fmt.Sprint(in.Value, i))); err != nil {
					return err
				}
			}
			return grpcstatus.Error(codes.Aborted, "enough")
		}},
		{StreamName: "Talk", ServerStreams: true, ClientStreams: true, Handler: func(e any, s grpc.ServerStream) error {
			for {
				var in wrapperspb.StringValue
				err := s.RecvMsg(&in)
				if errors.Is(err, io.EOF) {
					return s.SendMsg(wrapperspb.String("bye"))
				}
				if err != nil {
					e.(*echo).ended <- err
					return err
				}
				if err := s.SendMsg(&in); err != nil {
					return err
				}
			}
		}},
	},
}

//nolint:revive // grpc.MethodDesc requires this order of parameters.
func sayBack(
	_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor,
) (any, error) {
	var in wrapperspb.StringValue
	if err := decode(&in); err != nil {
		return nil, err
	}
	if in.Value == "fail" {
		return nil, grpcstatus.Error(codes.NotFound, "it fails: 100 % ü")
	}
	header, _ := metadata.FromIncomingContext(ctx)
	_ = grpc.SetTrailer(ctx, metadata.Pairs("x-last", "trailer"))
	return wrapperspb.String(fmt.Sprint(in.Value, header[":authority"], header["x-forwarded-for"])), nil
}

// serveGRPC starts a gRPC endpoint.
func serveGRPC(t *testing.T, options ...grpc.ServerOption) (e *echo, ip, port string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e = &echo{make(chan error, 10)}
	server := grpc.NewServer(options...)
	server.RegisterService(&echoService, e)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	ip, port = hostPort(t, listener.Addr())
	return e, ip, port
}

// caller returns a gRPC client of a.example.
func caller(t *testing.T, address string, secure credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	return callerOf(t, "a.example", address, secure)
}

// callerOf returns a gRPC client of a host.
func callerOf(t *testing.T, host, address string, secure credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(secure),
		grpc.WithAuthority(host))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

var trusting = credentials.NewTLS(&tls.Config{ServerName: "a.example", InsecureSkipVerify: true})

func TestGRPC(t *testing.T) {
	for protocol, options := range map[string][]grpc.ServerOption{
		"GRPC": nil, "GRPCS": {grpc.Creds(credentials.NewTLS(selfSigned(t)))},
	} {
		t.Run(protocol, func(t *testing.T) {
			e, ip, port := serveGRPC(t, options...)
			in := inFrontOf(t, ip, port, "backend-protocol: "+protocol)
			conn := caller(t, in.https, trusting)
			t.Run("one answer", func(t *testing.T) { oneAnswer(t, conn) })
			t.Run("an error", func(t *testing.T) {
				err := conn.Invoke(t.Context(), "/test.Echo/Say", wrapperspb.String("fail"),
					new(wrapperspb.StringValue))
				if s := grpcstatus.Convert(err); s.Code() != codes.NotFound || s.Message() != "it fails: 100 % ü" {
					t.Errorf("got %v", err)
				}
				err = conn.Invoke(t.Context(), "/test.Echo/Sing", wrapperspb.String("x"), new(wrapperspb.StringValue))
				if grpcstatus.Code(err) != codes.Unimplemented {
					t.Errorf("a method that there is not: %v", err)
				}
			})
			t.Run("many answers", func(t *testing.T) { manyAnswers(t, conn) })
			t.Run("both ways", func(t *testing.T) { bothWays(t, conn) })
			t.Run("the client goes away", func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				stream := talk(ctx, t, conn)
				say(t, stream, "hello")
				cancel()
				if err := await(t, "the end", e.ended); grpcstatus.Code(err) != codes.Canceled {
					t.Errorf("the endpoint is told %v", err)
				}
			})
		})
	}
}

func oneAnswer(t *testing.T, conn *grpc.ClientConn) {
	for _, text := range []string{"hello", strings.Repeat("x", 900<<10)} {
		var out wrapperspb.StringValue
		var trailer metadata.MD
		err := conn.Invoke(t.Context(), "/test.Echo/Say", wrapperspb.String(text), &out, grpc.Trailer(&trailer))
		if want := text + "[a.example] [127.0.0.1]"; err != nil || out.Value != want {
			t.Errorf("%d bytes: %.100q, %v", len(text), out.Value, err)
		}
		if got := trailer["x-last"]; len(got) != 1 || got[0] != "trailer" {
			t.Errorf("trailers are %v", trailer)
		}
	}
}

func manyAnswers(t *testing.T, conn *grpc.ClientConn) {
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, "/test.Echo/Tell")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stream.SendMsg(wrapperspb.String("n")), stream.CloseSend()); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		var out wrapperspb.StringValue
		if err := stream.RecvMsg(&out); err != nil || out.Value != fmt.Sprint("n", i) {
			t.Errorf("answer %d: %q, %v", i, out.Value, err)
		}
	}
	if err := stream.RecvMsg(new(wrapperspb.StringValue)); grpcstatus.Code(err) != codes.Aborted {
		t.Errorf("the end is %v", err)
	}
}

func talk(ctx context.Context, t *testing.T, conn *grpc.ClientConn) grpc.ClientStream {
	t.Helper()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/test.Echo/Talk")
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// say sends a message, and waits for the echo.
func say(t *testing.T, stream grpc.ClientStream, text string) {
	t.Helper()
	var out wrapperspb.StringValue
	if err := errors.Join(stream.SendMsg(wrapperspb.String(text)), stream.RecvMsg(&out)); err != nil ||
		out.Value != text {
		t.Fatalf("%q: %q, %v", text, out.Value, err)
	}
}

func bothWays(t *testing.T, conn *grpc.ClientConn) {
	stream := talk(t.Context(), t, conn)
	say(t, stream, "one")
	say(t, stream, strings.Repeat("x", 100<<10))
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	var out wrapperspb.StringValue
	if err := stream.RecvMsg(&out); err != nil || out.Value != "bye" {
		t.Errorf("the last word is %q, %v", out.Value, err)
	}
	if err := stream.RecvMsg(&out); !errors.Is(err, io.EOF) {
		t.Errorf("and then %v", err)
	}
}

// TestGRPCOfASilentClient checks that a client that only receives may be silent for longer than the body of an
// ordinary request may pause.
func TestGRPCOfASilentClient(t *testing.T) {
	_, ip, port := serveGRPC(t)
	in := newIngress(t)
	in.write("manifests.yaml", class+service("one", port, ip)+oneWith("backend-protocol: GRPC"))
	address := in.behindASite(map[string]any{"read_idle_timeout": "300ms", "protocols": []string{"h1", "h2c"}})
	conn := caller(t, address, insecure.NewCredentials())
	stream := talk(t.Context(), t, conn)
	say(t, stream, "one")
	silence := time.NewTimer(time.Second)
	<-silence.C
	say(t, stream, "two")
}

// TestGRPCSilence checks that a client of a gRPC route may be silent for longer than the body of an ordinary request
// may pause, and that silence of both sides ends the stream after the read timeout of the endpoint.
func TestGRPCSilence(t *testing.T) {
	_, ip, port := serveGRPC(t)
	in := start(t, class+service("one", port, ip)+annotated("patient", "patient.example", "one",
		"backend-protocol", "GRPC")+
		annotated("hasty", "hasty.example", "one", "backend-protocol", "GRPC", "proxy-read-timeout", "2")+
		global(`client-body-timeout: "1"`),
		"configmap default/global")
	caller := func(host string) *grpc.ClientConn {
		anyName := credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})
		conn, err := grpc.NewClient(in.https, grpc.WithTransportCredentials(anyName), grpc.WithAuthority(host))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	patient, hasty := talk(t.Context(), t, caller("patient.example")), talk(t.Context(), t, caller("hasty.example"))
	say(t, patient, "one")
	say(t, hasty, "one")
	began := time.Now()
	var out wrapperspb.StringValue
	if err := hasty.RecvMsg(&out); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the end of the silent stream is %v", err)
	}
	took(t, "the silence of both sides", began, 1900*time.Millisecond)
	say(t, patient, "two")
}

// TestGRPCWithoutEndpoints checks the status that a gRPC client gets if there is no endpoint.
func TestGRPCWithoutEndpoints(t *testing.T) {
	nobody := fixture.Port(t)
	for _, ips := range [][]string{{"127.0.0.1"}, nil} {
		in := start(t, class+service("one", nobody, ips...)+oneWith("backend-protocol: GRPC"))
		conn := caller(t, in.https, trusting)
		err := conn.Invoke(t.Context(), "/test.Echo/Say", wrapperspb.String("x"), new(wrapperspb.StringValue))
		if grpcstatus.Code(err) != codes.Unavailable {
			t.Errorf("endpoints %v: %v", ips, err)
		}
		in.stop()
	}
}
