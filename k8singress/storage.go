package k8singress

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/certmagic"

	"github.com/k8singress/k8singress/internal/kubestorage"
	"github.com/k8singress/k8singress/internal/logs"
	"github.com/k8singress/k8singress/internal/panics"
)

func init() { caddy.RegisterModule(new(Storage)) }

// Storage keeps certificates, ACME accounts, tokens of challenges and locks in the Secrets and Leases of a namespace, so
// that all replicas share them. The controller needs the rights to read and write both there.
type Storage struct {
	// Namespace has the Secrets and the Leases. Default: the namespace that Caddy runs in, or that of the kubeconfig.
	Namespace string `json:"namespace,omitempty"`
	// Kubeconfig is a kubeconfig file that says how to reach the API server. Default: the service account of the pod that
	// Caddy runs in.
	Kubeconfig string `json:"kubeconfig,omitempty"`

	key     string
	storage *kubestorage.Storage
	logs    *logs.Config
}

// storages keeps the storages over configurations, with what they have read.
var storages = caddy.NewUsagePool()

// CaddyModule returns the Caddy module information.
func (*Storage) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.storage.kubernetes", New: func() caddy.Module { return new(Storage) }}
}

// UnmarshalCaddyfile reads
//
//	storage kubernetes {
//		namespace <name>
//		kubeconfig <file>
//	}
//
// The block may be missing.
func (s *Storage) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if d.NextArg() {
		return d.Errf("storage kubernetes takes a block of options and no argument, found %q", d.Val())
	}
	options := map[string]*string{"namespace": &s.Namespace, "kubeconfig": &s.Kubeconfig}
	for d.NextBlock(0) {
		name := d.Val()
		value, ok := options[name]
		switch {
		case !ok:
			return d.Errf("storage kubernetes has no option %q: there are namespace and kubeconfig", name)
		case *value != "":
			return d.Errf("%s is given twice", name)
		case !d.AllArgs(value):
			return d.Errf("%s needs one argument", name)
		case *value == "":
			return d.Errf("%s is empty", name)
		}
	}
	return nil
}

// Provision finds the running storage, or begins to read one. It does not wait for the API server: who reads first does.
func (s *Storage) Provision(ctx caddy.Context) error {
	s.logs = logs.Add(ctx)
	key, err := json.Marshal(s)
	if err != nil {
		return err
	}
	value, _, err := storages.LoadOrNew(string(key), func() (caddy.Destructor, error) { return s.run() })
	if err != nil {
		return fmt.Errorf("the storage kubernetes: %w", err)
	}
	s.key, s.storage = string(key), value.(*sharedStorage).storage
	return nil
}

// sharedStorage is one that follows the cluster until no configuration uses it any more.
type sharedStorage struct {
	storage *kubestorage.Storage
	stop    context.CancelFunc
	stopped chan struct{}
}

// run starts a storage that outlives the configuration.
func (s *Storage) run() (*sharedStorage, error) {
	o := kubestorage.Options{Kubeconfig: s.Kubeconfig, Namespace: s.Namespace}
	storage, err := kubestorage.New(o, logs.Logger("storage.kubernetes"))
	if err != nil {
		return nil, err
	}
	r := &sharedStorage{storage: storage, stopped: make(chan struct{})}
	var ctx context.Context
	// The context of a configuration would keep that in memory.
	ctx, r.stop = context.WithCancel(context.Background()) //nolint:forbidigo // see above
	panics.Go("k8singress/storage", func() {
		defer close(r.stopped)
		storage.Run(ctx)
	})
	return r, nil
}

// Destruct ends the watches.
func (r *sharedStorage) Destruct() error {
	r.stop()
	<-r.stopped
	return nil
}

// CertMagicStorage returns the storage.
func (s *Storage) CertMagicStorage() (certmagic.Storage, error) { return s.storage, nil }

// Cleanup ends the storage when no configuration uses it any more.
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
