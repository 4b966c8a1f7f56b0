package engine_test

import (
	"slices"
	"testing"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
)

// followed returns the port http of the Service a/web, or the port with the given number.
func followed(port string) ir.FollowedPort {
	return ir.FollowedPort{Protocol: ir.TCP,
		ServicePort: ir.ServicePort{Service: ir.Name{Namespace: "a", Name: "web"}, Port: port}}
}

// TestFollowedServiceIsRead checks that a Caddy module gets the endpoints of a Service without any Ingress, whether the
// module is provisioned before or after the first translation, and that changes of the Service reach it.
func TestFollowedServiceIsRead(t *testing.T) {
	s := newSource(service(), addresses("127.0.0.1"))
	e := newEngine(t, s)
	early := e.Services().Follow(followed("80"))
	e.Adopt(provisioned(t), options(), nil)
	close(s.synced)
	late := e.Services().Follow(followed("http"))
	endpoints := func(want string) bool {
		all, err := early.Endpoints(t.Context())
		return err == nil && slices.Equal(all, []ir.Endpoint{{Address: want}})
	}
	if !endpoints("127.0.0.1:8080") {
		t.Error("the endpoints of the Service are missing")
	}
	if _, err := late.Backend(t.Context()); err == nil || err.Error() != "the Service a/web has no TCP port http" {
		t.Errorf("the error for a port that does not exist is %v", err)
	}
	s.set(addresses("127.0.0.2"))
	e.eventually("the endpoints change", func() bool { return endpoints("127.0.0.2:8080") })
	named, slice := service(), addresses("127.0.0.3")
	named.Spec.Ports[0].Name, slice.Ports[0].Name = "http", new("http")
	s.set(named, slice)
	e.eventually("the port gets a name", func() bool {
		all, err := late.Endpoints(t.Context())
		return err == nil && slices.Equal(all, []ir.Endpoint{{Address: "127.0.0.3:8080"}})
	})
	s.store.Apply(nil, []kinds.Object{named})
	e.eventually("the Service does not exist", func() bool {
		_, err := early.Backend(t.Context())
		return err != nil && err.Error() == "the Service a/web does not exist"
	})
	early.Close()
	late.Close()
	e.eventually("the backends are removed", func() bool { return len(e.Document().Backends) == 0 })
}

// TestFollowedServiceInADocument checks which Services Caddy modules can use if the process reads no objects.
func TestFollowedServiceInADocument(t *testing.T) {
	e := newEngine(t, nil)
	service, missing := e.Services().Follow(followed("80")), e.Services().Follow(followed("81"))
	e.Adopt(provisioned(t), options(), &document.Live{
		Backends: map[string]*document.Backend{"a/web/80": {Endpoints: []string{"127.0.0.1:8080"}}},
	})
	e.eventually("the endpoints are known", func() bool {
		all, err := service.Endpoints(t.Context())
		return err == nil && slices.Equal(all, []ir.Endpoint{{Address: "127.0.0.1:8080"}})
	})
	if _, err := missing.Backend(t.Context()); err == nil {
		t.Error("a backend that is not in the document has no error")
	}
}
