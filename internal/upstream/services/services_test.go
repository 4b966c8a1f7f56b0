package services_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
	"github.com/k8singress/k8singress/internal/upstream/services"
)

var web = ir.FollowedPort{
	ServicePort: ir.ServicePort{Service: ir.Name{Namespace: "a", Name: "web"}, Port: "http"}, Protocol: ir.TCP,
}

// finding returns a function for Update that finds the same for all ports.
func finding(f *services.Found) func(ir.FollowedPort) *services.Found {
	return func(ir.FollowedPort) *services.Found { return f }
}

func changed(r *services.Registry) bool {
	select {
	case <-r.Changed():
		return true
	default:
		return false
	}
}

func TestBackendWaitsForTheFirstLookUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, backend := services.New(), balancer.New("a/web/80")
		service := r.Follow(web)
		begin := time.Now()
		if _, err := service.Backend(t.Context()); err == nil || time.Since(begin) != 5*time.Second {
			t.Errorf("without a look-up, the error is %v after %v", err, time.Since(begin))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := service.Backend(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("when the request ends, the error is %v", err)
		}
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if got, err := service.Backend(t.Context()); got != backend || err != nil {
				t.Errorf("after the look-up, the backend is %v, the error %v", got, err)
			}
		})
		synctest.Wait()
		r.Update(finding(nil))
		r.Update(finding(&services.Found{Backend: backend}))
		waiting.Wait()
		r.Update(finding(nil))
		if got, _ := service.Backend(t.Context()); got != backend {
			t.Errorf("a port that was not looked up again has the backend %v", got)
		}
	})
}

func TestEndpoints(t *testing.T) {
	r, backend := services.New(), balancer.New("a/web/80")
	service := r.Follow(web)
	r.Update(finding(&services.Found{Backend: backend}))
	if _, err := service.Endpoints(t.Context()); err == nil {
		t.Error("a backend without endpoints has no error")
	}
	want := []ir.Endpoint{{Address: "10.0.0.1:80"}}
	backend.SetEndpoints(want)
	if got, err := service.Endpoints(t.Context()); !slices.Equal(got, want) || err != nil {
		t.Errorf("the endpoints are %v, the error %v", got, err)
	}
	missing := errors.New("missing")
	r.Update(finding(&services.Found{Err: missing}))
	if _, err := service.Endpoints(t.Context()); !errors.Is(err, missing) {
		t.Errorf("the error is %v", err)
	}
}

// TestFollowersShareAPort checks that a port is kept until the last module has closed it, so that a new configuration
// of Caddy finds the endpoints that the old one has used.
func TestFollowersShareAPort(t *testing.T) {
	r, backend := services.New(), balancer.New("a/web/80")
	old := r.Follow(web)
	if !changed(r) || !slices.Equal(r.Ports(), []ir.FollowedPort{web}) {
		t.Errorf("a module follows a port, and the ports are %v", r.Ports())
	}
	r.Update(finding(&services.Found{Backend: backend}))
	next := r.Follow(web)
	old.Close()
	old.Close()
	if changed(r) || len(r.Ports()) != 1 {
		t.Error("closing one of two changes the ports")
	}
	next.Close()
	if !changed(r) {
		t.Error("closing the last one changes nothing")
	}
	again := r.Follow(web)
	if got, err := again.Backend(t.Context()); got != backend || err != nil {
		t.Errorf("before the next look-up, the backend is %v, the error %v", got, err)
	}
	again.Close()
	if len(r.Ports()) != 0 {
		t.Errorf("no module follows a port, and the ports are %v", r.Ports())
	}
}
