package cluster

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestMetadataPatchesAStatus checks that the metadata client patches a status by a request that the RBAC rules allow,
// and requests a response that contains only metadata.
func TestMetadataPatchesAStatus(t *testing.T) {
	requests := make(chan string, 1)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- r.Method + " " + r.URL.String() + " " + r.Header.Get("Content-Type") + " " + string(body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w,
			`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"web",`+
				`"resourceVersion":"8"}}`)
	}))
	defer api.Close()
	c, err := New(Options{Kubeconfig: writeKubeconfig(t, api.Listener.Addr().String())}, quietLog(t))
	if err != nil {
		t.Fatal(err)
	}
	o, err := c.Metadata().Resource(networkingv1.SchemeGroupVersion.WithResource("ingresses")).Namespace("a").
		Patch(t.Context(), "web", types.MergePatchType, []byte(`{"status":{}}`),
			metav1.PatchOptions{FieldManager: "me"}, "status")
	if err != nil || o.ResourceVersion != "8" {
		t.Fatalf("the answer is %v, %v", o, err)
	}
	const want = `PATCH /apis/networking.k8s.io/v1/namespaces/a/ingresses/web/status?fieldManager=me ` +
		`application/merge-patch+json {"status":{}}`
	if got := <-requests; got != want {
		t.Errorf("the request is %s", got)
	}
}

// TestWritersShareTheirLimit checks that writes of statuses and Events share one rate limit.
func TestWritersShareTheirLimit(t *testing.T) {
	client, objects, err := writers(&rest.Config{Host: "127.0.0.1:1", QPS: 0.001, Burst: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !client.EventsV1().RESTClient().GetRateLimiter().TryAccept() {
		t.Fatal("the first request has to wait")
	}
	// A client returns an error immediately if its rate limit would delay the request beyond the deadline of the
	// context.
	ctx, cancel := context.WithTimeout(t.Context(), fixture.Patience)
	defer cancel()
	_, err = objects.Resource(networkingv1.SchemeGroupVersion.WithResource("ingresses")).Namespace("a").Get(ctx, "web",
		metav1.GetOptions{})
	if err == nil || !strings.Contains(err.Error(), "rate limiter") {
		t.Errorf("a request beyond the limit: %v", err)
	}
}
