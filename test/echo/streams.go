package main

import (
	"errors"
	"io"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// serveStreams sends back all data that it gets over TCP and UDP.
func serveStreams(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	packets, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	go acceptStreams(listener)
	go answerPackets(packets)
	return nil
}

func acceptStreams(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_, _ = io.Copy(conn, conn)
		}()
	}
}

func answerPackets(packets net.PacketConn) {
	buffer := make([]byte, 65535)
	for {
		n, client, err := packets.ReadFrom(buffer)
		if err != nil {
			return
		}
		_, _ = packets.WriteTo(buffer[:n], client)
	}
}

// newGRPC returns a server with the health service. For all other methods, it sends the messages back. It decodes them
// as Empty messages, which keep unknown fields.
func newGRPC() *grpc.Server {
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		for {
			var message emptypb.Empty
			err := stream.RecvMsg(&message)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return grpcstatus.Error(codes.Internal, err.Error())
			}
			if err := stream.SendMsg(&message); err != nil {
				return err
			}
		}
	}))
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	return server
}
