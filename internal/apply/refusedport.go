package apply

import (
	"errors"
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/l4app"
)

// listeners are the commands that list who listens, by protocol.
var listeners = map[string]string{"tcp": "ss -ltnp", "udp": "ss -lunp"}

// refusedPort is the verdict on the object that a port comes from.
func refusedPort(r l4app.Refusal) *report.Verdict {
	origin := ir.ParseRef(r.Origin)
	protocol, port, _ := strings.Cut(r.Name, "/")
	p := report.Problem{
		Severity: report.Error, Reason: report.PortConflict, Message: "port " + r.Name + " is left out: " + r.Err.Error(),
	}
	switch origin.Kind {
	case kinds.ConfigMap:
		p.Field = "data[" + port + "]"
	case kinds.Service:
		p.Field = report.AnnotationField(kinds.OwnPrefix + protocol + "-ports")
	}
	if errors.Is(r.Err, l4app.ErrHeld) {
		p.Message += ". " + listeners[protocol] + " lists who listens where"
	}
	return &report.Verdict{Object: origin, Problems: []report.Problem{p}}
}
