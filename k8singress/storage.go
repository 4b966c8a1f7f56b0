package k8singress

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/certmagic"

	kubestorage "github.com/k8singress/k8singress/internal/kube/storage"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/process/logs"
	"github.com/k8singress/k8singress/internal/process/panics"
)

func init() { caddy.RegisterModule(new(Storage)) }

// Storage stores certificates, ACME accounts, challenge tokens and locks in Secrets and Leases in one namespace, so
// that all replicas share them. The controller needs permission to read and write Secrets and Leases in this namespace.
type Storage struct {
	// Namespace is the namespace of the Secrets and Leases. Default: the namespace of the pod, or the namespace in the
	// kubeconfig file.
	Namespace string `json:"namespace,omitempty"`
	// CopyFrom is the namespace where certificates were stored previously. Its Secrets are copied to Namespace once,
	// and no certificates are ordered before this is done. The controller needs permission to list Secrets in this
	// namespace. Default: nothing is copied.
	CopyFrom string `json:"copy_from,omitempty"`
	// Kubeconfig is the path of the kubeconfig file that is used to access the API server. Default: the service account
	// of the pod.
	Kubeconfig string `json:"kubeconfig,omitempty"`

	key     string
	storage *kubestorage.Storage
	logs    *logs.Config
}

// storages holds the running storages and their cached data, so that they survive configuration reloads.
var storages = caddy.NewUsagePool()

// CaddyModule returns the Caddy module information.
func (*Storage) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.storage.kubernetes", New: func() caddy.Module { return new(Storage) }}
}

// UnmarshalCaddyfile parses
//
//	storage kubernetes {
//		namespace <name>
//		copy_from <namespace>
//		kubeconfig <file>
//	}
//
// The block is optional.
func (s *Storage) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if d.NextArg() {
		return d.Errf("storage kubernetes takes no argument, only a block of options; found %q", d.Val())
	}
	options := map[string]*string{"namespace": &s.Namespace, "copy_from": &s.CopyFrom, "kubeconfig": &s.Kubeconfig}
	given := option.Given{}
	for d.NextBlock(0) {
		name := d.Val()
		value, err := option.Select(given, options, "storage kubernetes", name, "remove one of the two lines")
		switch {
		case err != nil:
			return d.WrapErr(err)
		case !d.AllArgs(value):
			return d.Errf("%s takes exactly one argument", name)
		case *value == "":
			return d.Errf("the argument of %s is empty: write a value, or remove the line", name)
		}
	}
	return nil
}

// Provision uses the running storage with the same settings, or creates one. It does not wait for a connection to the
// API server; the first read from the storage does.
func (s *Storage) Provision(ctx caddy.Context) error {
	s.logs = logs.Add(ctx)
	key, err := json.Marshal(s)
	if err != nil {
		return err
	}
	value, _, err := storages.LoadOrNew(string(key), func() (caddy.Destructor, error) { return s.run() })
	if err != nil {
		return fmt.Errorf("starting the storage kubernetes: %w", err)
	}
	s.key, s.storage = string(key), value.(*sharedStorage).storage
	return nil
}

// sharedStorage is a storage that is shared by several configurations. It watches its Secrets until no configuration
// uses it any more.
type sharedStorage struct {
	storage *kubestorage.Storage
	stop    context.CancelFunc
	stopped chan struct{}
}

// run starts a storage that survives configuration reloads.
func (s *Storage) run() (*sharedStorage, error) {
	o := kubestorage.Options{Kubeconfig: s.Kubeconfig, Namespace: s.Namespace, CopyFrom: s.CopyFrom}
	storage, err := kubestorage.New(o, logs.Logger("storage.kubernetes"))
	if err != nil {
		return nil, err
	}
	r := &sharedStorage{storage: storage, stopped: make(chan struct{})}
	var ctx context.Context
	// The context is not derived from the context of a configuration, because this would keep the configuration in
	// memory.
	ctx, r.stop = context.WithCancel(context.Background()) //nolint:forbidigo // See above.
	panics.Go("k8singress/storage", func() {
		defer close(r.stopped)
		storage.Run(ctx)
	})
	return r, nil
}

// Destruct stops watching the Secrets.
func (r *sharedStorage) Destruct() error {
	r.stop()
	<-r.stopped
	return nil
}

// CertMagicStorage returns the storage.
func (s *Storage) CertMagicStorage() (certmagic.Storage, error) { return s.storage, nil }

// Cleanup stops the storage if no configuration uses it any more.
func (s *Storage) Cleanup() error {
	defer s.logs.Close()
	if s.storage == nil {
		return nil
	}
	_, err := storages.Delete(s.key)
	return err
}

var (
	_ caddy.Provisioner      = (*Storage)(nil)
	_ caddy.CleanerUpper     = (*Storage)(nil)
	_ caddy.StorageConverter = (*Storage)(nil)
	_ caddyfile.Unmarshaler  = (*Storage)(nil)
)
