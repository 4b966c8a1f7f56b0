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
)

// ownService records what was written to a Service, and when.
type ownService struct {
	uid     types.UID
	version string
	ports   []corev1.ServicePort
	at      time.Time
	// pause is the minimum time between the last write, at the time at, and the next write.
	pause time.Duration
	// refused is the verdict if the API server has rejected the last write, otherwise nil.
	refused *report.Verdict
}

// calm is the time without writes after which the next write is not considered a repetition of the last one.
const calm = 2 * lastRetry

// apply writes the ports of a plan. It returns the time after which it must be called again, or 0.
func (p *ports) apply(ctx context.Context, o *ownService, service *corev1.Service,
	plan serviceports.Plan) time.Duration {
	if service == nil || !plan.Write {
		o.refused = nil
		return 0
	}
	if o.knows(service, plan.Ports) {
		return 0
	}
	if wait := time.Until(o.at.Add(o.pause)); wait > 0 {
		return wait
	}
	err := p.write(ctx, service, plan.Ports)
	if ctx.Err() != nil {
		return 0
	}
	o.note(service, plan.Ports, err)
	if err == nil {
		p.options.Log.Info("updated the ports of the Service",
			zap.String("service", service.Namespace+"/"+service.Name), zap.Int("count", len(plan.Ports)))
		return 0
	}
	if o.refused == nil {
		p.options.Log.Warn("cannot write the ports of the Service; trying again", zap.Error(err))
	}
	return o.pause
}

// knows reports whether these ports were already written to this version of the Service. The snapshot contains them
// only after the API server has sent the new version.
func (o *ownService) knows(service *corev1.Service, ports []corev1.ServicePort) bool {
	return o.refused == nil && o.uid == service.UID && o.version == service.ResourceVersion &&
		slices.Equal(o.ports, ports)
}

// note records a write. The pause after it grows while writes fail and while another writer reverts them.
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

// refusal returns the verdict on an error that the owner of the Service can fix, or nil for other errors.
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

// write applies the ports with server-side apply under its own field manager, which owns no other fields. It does not
// use force, so ports that another manager has taken over since the plan are not changed. The UID prevents it from
// creating a Service that was deleted in the meantime.
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
