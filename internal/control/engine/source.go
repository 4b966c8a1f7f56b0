package engine

import (
	"cmp"
	"fmt"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/k8singress/k8singress/internal/kube/cluster"
	"github.com/k8singress/k8singress/internal/kube/files"
	"github.com/k8singress/k8singress/internal/kube/status"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// Fixed returns only those options on which the source of Kubernetes objects and the status writer depend. Both are
// created with the engine, so a change of these options requires a new engine.
func Fixed(o settings.Config) settings.Config {
	if o.Source == nil || o.Source.Kubernetes == nil {
		return settings.Config{Source: o.Source}
	}
	fixed := settings.Config{
		Source: o.Source, Election: o.Election, ElectionID: o.ElectionID, ElectionFallback: o.ElectionFallback,
		ElectionNamespace: o.ElectionNamespace, ElectionTTL: o.ElectionTTL, PublishNodes: o.PublishNodes,
	}
	if len(o.Source.Kubernetes.Namespaces) == 0 {
		// The source watches all namespaces, so it reads all objects to which the other options refer anyway. Therefore
		// it does not depend on these options.
		return fixed
	}
	fixed.ConfigMap, fixed.TCPServices, fixed.UDPServices = o.ConfigMap, o.TCPServices, o.UDPServices
	fixed.PublishService, fixed.DefaultCertificate = o.PublishService, o.DefaultCertificate
	fixed.DefaultBackend = o.DefaultBackend
	return fixed
}

// NewSource returns the source of Kubernetes objects that the options select and, for a cluster, the status writer. The
// source is nil if the options select no source. NewSource only reads a kubeconfig; objects are read by the Run method
// of the source.
func NewSource(o settings.Config, log *zap.Logger) (Source, Publisher, error) {
	// Remove all options that Fixed does not return, so that they cannot be used here by mistake.
	o = Fixed(o)
	switch {
	case o.Source == nil:
		return nil, nil, nil
	case o.Source.Manifests != nil:
		return files.New(o.Source.Manifests.Dir, log), nil, nil
	case o.Source.Kubernetes != nil:
		return fromCluster(o, log)
	}
	return nil, nil, fmt.Errorf("\"source\" must contain either \"kubernetes\" or \"manifests\"")
}

func fromCluster(o settings.Config, log *zap.Logger) (Source, Publisher, error) {
	if _, err := labels.Parse(o.Source.Kubernetes.NamespaceSelector); err != nil {
		return nil, nil, fmt.Errorf("namespace_selector: %w", err)
	}
	secrets := o.Source.Kubernetes.Secrets
	if secrets != "" && secrets != settings.SecretsAll && secrets != settings.SecretsReferenced {
		return nil, nil, fmt.Errorf("secrets is %q, but must be %s or %s", secrets, settings.SecretsAll,
			settings.SecretsReferenced)
	}
	var optional []string
	if o.Source.Kubernetes.NamespaceSelector != "" {
		optional = append(optional, kinds.Namespace)
	}
	if o.PublishNodes != "" {
		optional = append(optional, kinds.Pod, kinds.Node)
	}
	c, err := cluster.New(cluster.Options{
		Kubeconfig: o.Source.Kubernetes.Kubeconfig,
		Namespaces: o.Source.Kubernetes.Namespaces,
		Optional:   optional,
		Also:       named(o),
		Referenced: secrets == settings.SecretsReferenced,
	}, log)
	if err != nil {
		return nil, nil, err
	}
	writer, err := status.New(c.Client(), c.Metadata(), status.Options{
		NoElection: o.Election == settings.ElectionOff,
		LeaseName:  o.ElectionID, LeaseFallback: o.ElectionFallback,
		LeaseNamespace: cmp.Or(o.ElectionNamespace, c.Namespace()),
		Times:          status.TimesOf(time.Duration(o.ElectionTTL)),
		Pod:            c.Pod(), PodNamespace: c.Namespace(), Log: log,
	})
	if err != nil {
		return nil, nil, err
	}
	return c, writer, nil
}

// named returns the objects to which options refer, such as the default certificate. They are read even if their
// namespaces are not watched.
func named(o settings.Config) []ir.Ref {
	var refs []ir.Ref
	for kind, names := range map[string][]ir.Name{
		kinds.ConfigMap: {o.ConfigMap, o.TCPServices, o.UDPServices},
		kinds.Service:   {o.PublishService, o.DefaultBackend.Service},
		kinds.Secret:    {o.DefaultCertificate},
	} {
		for _, name := range names {
			if !name.IsZero() {
				refs = append(refs, name.Of(kind))
			}
		}
	}
	return refs
}
