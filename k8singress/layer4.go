package k8singress

import (
	"github.com/k8singress/k8singress/internal/upstream/services"
	"github.com/k8singress/k8singress/l4app"
)

// Layer4 returns what the handler k8singress of the layer4 app uses: the TCP and UDP ports, and the registry in which
// Caddy modules follow Services. It must be called after Provision.
func (a *App) Layer4() (*l4app.Ports, *services.Registry) {
	return a.engine.Ports(), a.engine.Services()
}
