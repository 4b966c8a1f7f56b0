package apply

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/process/netaddr"
	"github.com/k8singress/k8singress/l4app"
)

// TestRefusedPort checks that the verdict names the entry of the port, and how to find the process that uses the port.
func TestRefusedPort(t *testing.T) {
	denied := &net.OpError{Op: "listen", Net: "tcp", Err: os.ErrPermission}
	for _, test := range []struct {
		name, origin   string
		err            error
		field, message string
	}{
		{
			"tcp/5432", "ConfigMap/ingress/tcp", fmt.Errorf("listening: %w", netaddr.ErrHeld), "data[5432]",
			"port tcp/5432 is left out: listening: " + netaddr.ErrHeld.Error() +
				". ss -ltnp lists the processes that listen on each port",
		},
		{
			"udp/53", "Service/shop/dns", fmt.Errorf("listening: %w", netaddr.ErrHeld),
			"metadata.annotations[k8singress.io/udp-ports]",
			"port udp/53 is left out: listening: " + netaddr.ErrHeld.Error() +
				". ss -lunp lists the processes that listen on each port",
		},
		{
			"tcp/80", "Service/shop/db", errors.New("a site has it"), "metadata.annotations[k8singress.io/tcp-ports]",
			"port tcp/80 is left out: a site has it",
		},
		{
			"tcp/99", "Service/shop/db", denied, "metadata.annotations[k8singress.io/tcp-ports]",
			"port tcp/99 is left out: " + denied.Error(),
		},
	} {
		got := refusedPort(l4app.Refusal{Name: test.name, Origin: ir.ParseRef(test.origin), Err: test.err})
		want := []report.Problem{{Severity: report.Error, Reason: report.PortConflict, Field: test.field,
			Message: test.message}}
		if diff := cmp.Diff(want, got.Problems); diff != "" || got.Object.String() != test.origin {
			t.Errorf("%s (-want +got):\n%s", got.Object, diff)
		}
	}
}

// TestRejectedPort checks that a port whose handlers Caddy rejects is not reported as a conflict.
func TestRejectedPort(t *testing.T) {
	ports := l4app.New(zap.NewNop(), l4app.Tables{})
	defer ports.Close()
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	defer cancel()
	refused := ports.Update(ctx, map[string]*document.Port{"tcp/99": {Origin: ir.ParseRef("Service/shop/db")}})
	if len(refused) != 1 {
		t.Fatalf("refused are %v", refused)
	}
	if got := refusedPort(refused[0]); got.Problems[0].Reason != report.Quarantined {
		t.Errorf("the reason is %s", got.Problems[0].Reason)
	}
}
