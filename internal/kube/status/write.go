package status

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
)

// either calls the function usual, and falls back to the function other if RBAC forbids usual. If only other is
// allowed, it sets onlyOther, so that later calls skip usual. If both are forbidden, it returns the error of usual.
func either(onlyOther *atomic.Bool, usual, other func() error) error {
	var refused error
	if !onlyOther.Load() {
		if refused = usual(); !apierrors.IsForbidden(refused) {
			return refused
		}
	}
	err := other()
	onlyOther.Store(!apierrors.IsForbidden(err))
	if refused != nil && apierrors.IsForbidden(err) {
		return refused
	}
	return err
}

// writeStatus writes the status of an object with a patch. It does nothing if the object was deleted in the meantime.
// It falls back to an update, because the RBAC rules of ingress-nginx allow the verb update for the status, but not the
// verb patch.
func (w *Writer) writeStatus(ctx context.Context, ref ir.Ref, c *Change) error {
	err := either(&w.updates,
		func() error { return w.patchStatus(ctx, ref, c.Status) },
		func() error { return w.updateIngress(ctx, ref, c.Status) })
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the status: %w", err)
	}
	w.memory.wroteStatus(ref, c)
	w.rivals.wrote(ref, c, time.Now())
	return nil
}

func (w *Writer) patchStatus(ctx context.Context, ref ir.Ref, patch string) error {
	kind, _ := kinds.ByName(ref.Kind)
	_, err := w.objects.Resource(kind.GroupVersion.WithResource(kind.Resource)).Namespace(ref.Namespace).Patch(
		ctx, ref.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: controllerName}, "status")
	return err
}

// updateIngress updates the status of an Ingress, which is the only kind whose status is written. It reads the complete
// Ingress first: an update of the status also replaces metadata, some of which is trimmed from the objects in the
// snapshot.
func (w *Writer) updateIngress(ctx context.Context, ref ir.Ref, patch string) error {
	ingresses := w.client.NetworkingV1().Ingresses(ref.Namespace)
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		object, err := ingresses.Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		// The patch contains the complete status. Without this reset, it would be merged with the existing status.
		object.Status = networkingv1.IngressStatus{}
		if err := json.Unmarshal([]byte(patch), object); err != nil {
			return fmt.Errorf("applying the patch: %w", err)
		}
		_, err = ingresses.UpdateStatus(ctx, object, metav1.UpdateOptions{FieldManager: controllerName})
		return err
	})
}

// writeEvent writes an Event unless this or another replica has already written it. It uses the API group
// events.k8s.io, and falls back to the core API, because the RBAC rules of ingress-nginx only allow Events of the core
// API.
func (w *Writer) writeEvent(ctx context.Context, event *eventsv1.Event) error {
	name := event.Namespace + "/" + event.Name
	if w.memory.hasEvent(name) {
		return nil
	}
	err := either(&w.coreEvents, func() error { return w.createEvent(ctx, event) },
		func() error { return w.createCoreEvent(ctx, event) })
	if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing an Event: %w", err)
	}
	w.memory.wroteEvent(name)
	return nil
}

func (w *Writer) createEvent(ctx context.Context, event *eventsv1.Event) error {
	now := *event
	now.EventTime, now.ReportingInstance = metav1.NowMicro(), w.identity
	_, err := w.client.EventsV1().Events(event.Namespace).Create(ctx, &now,
		metav1.CreateOptions{FieldManager: controllerName})
	return err
}

func (w *Writer) createCoreEvent(ctx context.Context, event *eventsv1.Event) error {
	now := metav1.Now()
	_, err := w.client.CoreV1().Events(event.Namespace).Create(ctx, &corev1.Event{
		ObjectMeta: event.ObjectMeta, InvolvedObject: event.Regarding, Type: event.Type, Reason: event.Reason,
		Message: event.Note,
		Source:  corev1.EventSource{Component: event.ReportingController}, FirstTimestamp: now,
		LastTimestamp: now, Count: 1,
		ReportingController: event.ReportingController, ReportingInstance: w.identity,
	}, metav1.CreateOptions{FieldManager: controllerName})
	return err
}
