package client

import (
	"errors"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

func TestKlogGoesToZap(t *testing.T) {
	core, logged := observer.New(zap.DebugLevel)
	QuietKlog(zap.NewNop())
	QuietKlog(zap.New(core))
	klog.ErrorS(errors.New("boom"), "failed", "resource", "pods")
	klog.Background().WithValues("a", 1).Info("hello")
	klog.Background().V(4).Info("too detailed")
	entries := logged.All()
	if len(entries) != 2 || entries[0].Level != zap.WarnLevel || entries[1].Level != zap.DebugLevel {
		t.Fatalf("logged %v", entries)
	}
	if fields := entries[0].ContextMap(); fields["error"] != "boom" || fields["resource"] != "pods" {
		t.Errorf("fields %v", fields)
	}
	if fields := entries[1].ContextMap(); fields["a"] != int64(1) {
		t.Errorf("fields %v", fields)
	}
}

func TestUnavailableMessages(t *testing.T) {
	resource := schema.GroupResource{Resource: "secrets"}
	for err, want := range map[error]bool{
		errors.New("connection refused"):                  true,
		apierrors.NewServiceUnavailable("starting"):       true,
		apierrors.NewInternalError(errors.New("no etcd")): true,
		apierrors.NewTooManyRequests("later", 1):          true,
		apierrors.NewForbidden(resource, "", nil):         false,
		apierrors.NewResourceExpired("too old"):           false,
		apierrors.NewBadRequest("no initial events here"): false,
	} {
		if got := Away(err); got != want {
			t.Errorf("Away(%v) = %v", err, got)
		}
	}
}
