package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/translate/backends"
	"github.com/k8singress/k8singress/internal/upstream/services"
)

// follow is called when Caddy modules follow other Services than before.
func (l *loop) follow() {
	if l.source == nil {
		l.findFollowed()
		return
	}
	l.hold.change()
}

// findFollowed passes the backends of the current configuration to the Caddy modules that use them.
func (l *loop) findFollowed() {
	find := l.findTranslated
	if l.source == nil {
		find = l.findInDocument
	}
	l.services.Update(find)
}

// findTranslated returns the backend for a port of a Service, or nil if the port was not followed when the Kubernetes
// objects were translated.
func (l *loop) findTranslated(port ir.FollowedPort) *services.Found {
	i, found := slices.BinarySearchFunc(l.config.Followed, port,
		func(b ir.FollowedBackend, port ir.FollowedPort) int { return b.Compare(port) })
	switch {
	case !found:
		return nil
	case l.config.Followed[i].Problem != "":
		return &services.Found{Err: errors.New(l.config.Followed[i].Problem)}
	}
	return &services.Found{Backend: l.endpoints.Backend(l.config.Followed[i].Backend.ID)}
}

// findInDocument returns the backend for a port of a Service from a live configuration that was not translated from
// Kubernetes objects. Such a configuration contains only the numbers of ports.
func (l *loop) findInDocument(port ir.FollowedPort) *services.Found {
	id := backends.ID(port.Service.Of(kinds.Service), port.Port, port.Protocol)
	if l.document().Backends[id] == nil {
		return &services.Found{Err: fmt.Errorf("the configuration contains no backend %s", id)}
	}
	return &services.Found{Backend: l.endpoints.Backend(id)}
}
