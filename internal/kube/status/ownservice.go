package status

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/k8singress/k8singress/internal/kube/serviceports"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/process/wake"
)

// ownService records the last write to a Service: which ports were written, when, and the resourceVersion of the
// Service at that time.
type ownService struct {
	uid     types.UID
	version string
	ports   []corev1.ServicePort
	at      time.Time
	// pause is the minimum time between two writes. The field at contains the time of the last write.
	pause time.Duration
	// refused is the problem of the Service if the last write was rejected for a reason that the owner of the Service
	// can fix, otherwise nil.
	refused *report.Verdict
}

// calm is the time after which the pause between writes is reset. If a write fails, or writes the same ports as the
// previous one, before this time has passed, the pause doubles.
const calm = 2 * lastRetry

// apply writes the planned ports to the Service if necessary. It must be called again after the
// returned duration.
func (p *ports) apply(ctx context.Context, o *ownService, service *corev1.Service,
	plan serviceports.Plan) time.Duration {
	if service == nil || !plan.Write {
		o.refused = nil
		return wake.Never
	}
	if o.knows(service, plan.Ports) {
		return wake.Never
	}
	if wait := time.Until(o.at.Add(o.pause)); wait > 0 {
		return wait
	}
	err := p.write(ctx, service, plan.Ports)
	if ctx.Err() != nil {
		return wake.Never
	}
	o.note(service, plan.Ports, err)
	if err == nil {
		p.options.Log.Info("updated the ports of the Service",
			zap.String("service", service.Namespace+"/"+service.Name), zap.Int("count", len(plan.Ports)))
		return wake.Never
	}
	if o.refused == nil {
		p.options.Log.Warn("cannot write the ports of the Service; trying again", zap.Error(err))
	}
	return o.pause
}

// knows reports whether the ports were already written to the Service, but the snapshot still contains the Service as
// it was before. The snapshot contains the written ports only after the watch has reported the new resourceVersion.
func (o *ownService) knows(service *corev1.Service, ports []corev1.ServicePort) bool {
	return o.refused == nil && o.uid == service.UID && o.version == service.ResourceVersion &&
		slices.Equal(o.ports, ports)
}

// note records a write and its result. The pause until the next write doubles as long as writes fail, or as long as
// another client reverts them.
func (o *ownService) note(service *corev1.Service, ports []corev1.ServicePort, err error) {
	again := err != nil || o.uid == service.UID && slices.Equal(o.ports, ports)
	if again && time.Since(o.at) < calm {
		o.pause = min(max(2*o.pause, firstRetry), lastRetry)
	} else {
		o.pause = firstRetry
	}
	o.at, o.refused = time.Now(), refusal(service, err)
	o.uid, o.version, o.ports = service.UID, service.ResourceVersion, ports
	if err != nil {
		o.version = ""
	}
}

// refusal returns err as a problem of the Service if the owner of the Service can fix the cause, and nil for other
// errors.
func refusal(service *corev1.Service, err error) *report.Verdict {
	switch {
	case apierrors.IsForbidden(err):
		return serviceports.Refused(service,
			"publish_ports cannot change this Service, because RBAC forbids it: grant the controller permission to "+
				"patch it, as the chart does with k8singress.options.publish_ports, or remove the option publish_ports")
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		return serviceports.Refused(service, "the API server rejected the ports of publish_ports: "+err.Error())
	}
	return nil
}

// write uses server-side apply with a separate field manager, which owns only these ports. It does not force conflicts,
// so ports that another field manager has taken over in the meantime are not changed. The UID ensures that a Service
// that was deleted in the meantime is not created again.
func (p *ports) write(ctx context.Context, service *corev1.Service, entries []corev1.ServicePort) error {
	object := map[string]any{
		"apiVersion": "v1", "kind": kinds.Service,
		"metadata": map[string]any{"namespace": service.Namespace, "name": service.Name, "uid": service.UID},
	}
	if len(entries) > 0 {
		object["spec"] = map[string]any{"ports": entries}
	}
	body, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encoding the ports: %w", err)
	}
	_, err = p.client.CoreV1().Services(service.Namespace).Patch(
		ctx, service.Name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: kinds.PortsManager})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the ports: %w", err)
	}
	return nil
}
