// Package ingressnginx lets a Caddy binary take the place of the programs in the image of ingress-nginx, so that a
// Deployment of ingress-nginx works with another image and its existing command. The import is enough:
//
//	xcaddy build --with github.com/k8singress/k8singress --with github.com/k8singress/k8singress/ingressnginx
//
// It takes effect only if the binary has the name of one of these programs, or is an entrypoint that gets such a name
// as its first argument. Package k8singress alone does not look at the name of the binary.
package ingressnginx

import (
	"os"
	"path/filepath"

	_ "github.com/k8singress/k8singress/k8singress" // It registers the command that arguments returns.
)

// The names of two programs in the image of ingress-nginx. controllerName is the controller itself. waitName is called
// by the preStop hook of its pods; here it does nothing, because Caddy drains connections by itself.
const (
	controllerName = "nginx-ingress-controller"
	waitName       = "wait-shutdown"
)

func init() {
	if filepath.Base(os.Args[0]) == waitName {
		os.Exit(0)
	}
	os.Args = arguments(os.Args)
}

// arguments converts an ingress-nginx command line to a Caddy command line. The name of the controller may be the first
// argument, or the second one after the entrypoint of an image. Other command lines are returned unchanged.
func arguments(args []string) []string {
	for i := range min(len(args), 2) {
		if filepath.Base(args[i]) == controllerName {
			return append([]string{args[0], "k8singress", "run"}, args[i+1:]...)
		}
	}
	return args
}
