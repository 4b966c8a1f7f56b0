package storage

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/k8singress/k8singress/internal/model/shrinking"
)

const (
	// byFolder is the name of the index that finds Secrets by the folders that contain their keys.
	byFolder = "folder"
	// awaitInterval is the interval at which await compares resourceVersions.
	awaitInterval = 10 * time.Millisecond
)

// secretCache holds the newest known state of each Secret. It gets the state from the watch, as a cache.ReflectorStore,
// and from the responses to other requests of this process, which are often newer than the watch.
type secretCache struct {
	log *zap.Logger
	// changed is a function that is called with the keys whose values have changed. The mutex is not held during the
	// call.
	changed func(keys []string)
	// synced is closed after the first list of all Secrets.
	synced chan struct{}
	first  sync.Once

	mu      sync.Mutex
	secrets cache.Indexer
	// version is the resourceVersion of the last list or watch event. It is empty before the first list.
	version string
	// gone holds deleted Secrets, each in its last known state. It prevents them from being stored again while the
	// watch, which may lag behind, still reports them as existing.
	gone shrinking.Map[string, *corev1.Secret]
	// wrote is the newest resourceVersion of a Secret that this process has written.
	wrote string
	// keys are the keys whose values have changed. unlock passes them to the function changed.
	keys []string
}

func newSecretCache(log *zap.Logger, changed func(keys []string)) *secretCache {
	name := func(object any) (string, error) { return object.(*corev1.Secret).Name, nil }
	return &secretCache{
		log: log, changed: changed, synced: make(chan struct{}),
		secrets: cache.NewIndexer(name, cache.Indexers{byFolder: foldersOf}),
	}
}

// get returns the newest known state of a Secret, or nil if it does not exist. The caller must not modify it.
func (c *secretCache) get(name string) *corev1.Secret {
	object, _, _ := c.secrets.GetByKey(name)
	secret, _ := object.(*corev1.Secret)
	return secret
}

// within returns the Secrets whose keys are inside a folder, at any depth.
func (c *secretCache) within(folder string) []*corev1.Secret {
	objects, _ := c.secrets.ByIndex(byFolder, folder)
	secrets := make([]*corev1.Secret, len(objects))
	for i, object := range objects {
		secrets[i] = object.(*corev1.Secret)
	}
	return secrets
}

// onWrite updates the cache with the Secret in the response to a write of this process.
func (c *secretCache) onWrite(secret *corev1.Secret) error {
	err := c.onRead(secret)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && (c.wrote == "" || newer(secret.ResourceVersion, c.wrote)) {
		c.wrote = secret.ResourceVersion
	}
	return err
}

// onRead updates the cache with the Secret in the response to a read request. It returns an error if the Secret does
// not belong to the storage.
func (c *secretCache) onRead(secret *corev1.Secret) error {
	err := check(secret)
	if err == nil {
		c.mu.Lock()
		defer c.unlock()
		c.put(secret)
	}
	return err
}

// onGone updates the cache after a response has shown that a Secret was deleted. secret is a state from before the
// deletion, but not necessarily the last one.
func (c *secretCache) onGone(secret *corev1.Secret) {
	c.mu.Lock()
	defer c.unlock()
	known := c.get(secret.Name)
	switch {
	case known == nil && c.shown(secret.ResourceVersion):
		// The watch has already reported the deletion, so the cache is up to date.
		return
	case known != nil && newer(known.ResourceVersion, secret.ResourceVersion):
		if known.UID != secret.UID {
			return
		}
		secret = known
	}
	c.gone.Set(secret.Name, secret)
	c.drop(secret)
}

// Add handles a watch event for an added or changed Secret. The watch delivers Secrets in the order of their
// resourceVersions.
func (c *secretCache) Add(object any) error {
	secret := object.(*corev1.Secret)
	if c.valid(secret) {
		c.mu.Lock()
		defer c.unlock()
		c.put(secret)
		c.advance(secret.ResourceVersion)
	}
	return nil
}

// Update calls Add.
func (c *secretCache) Update(object any) error { return c.Add(object) }

// Delete handles a watch event for a deleted Secret. The resourceVersion of the Secret is the version of its deletion.
func (c *secretCache) Delete(object any) error {
	secret := object.(*corev1.Secret)
	c.mu.Lock()
	defer c.unlock()
	if known := c.get(secret.Name); known != nil && !newer(known.ResourceVersion, secret.ResourceVersion) {
		c.drop(known)
	}
	if gone := c.gone.Get(secret.Name); gone != nil && !newer(gone.ResourceVersion, secret.ResourceVersion) {
		c.gone.Delete(secret.Name)
	}
	c.advance(secret.ResourceVersion)
	return nil
}

// Replace handles a list of all Secrets, which the API server has returned with the given resourceVersion. If the cache
// has a newer state of a Secret, this state is kept. But if version is older than the last version from the watch, the
// API server was restored from a backup, and the list replaces everything.
func (c *secretCache) Replace(objects []any, version string) error {
	listed := map[string]*corev1.Secret{}
	for _, object := range objects {
		if secret := object.(*corev1.Secret); c.valid(secret) {
			listed[secret.Name] = secret
		}
	}
	c.mu.Lock()
	defer c.unlock()
	restored := newer(c.version, version)
	for _, object := range c.secrets.List() {
		known := object.(*corev1.Secret)
		if restored || listed[known.Name] == nil && !newer(known.ResourceVersion, version) {
			c.drop(known)
		}
	}
	for name, gone := range c.gone.All() {
		same := listed[name] != nil && listed[name].UID == gone.UID
		if restored || !same && !newer(gone.ResourceVersion, version) {
			c.gone.Delete(name)
		}
	}
	c.version = ""
	for _, secret := range listed {
		c.put(secret)
	}
	c.version = version
	c.first.Do(func() { close(c.synced) })
	return nil
}

// Resync does nothing.
func (c *secretCache) Resync() error { return nil }

func (c *secretCache) valid(secret *corev1.Secret) bool {
	err := check(secret)
	if err != nil {
		c.log.Warn("ignored a Secret that has the label of the storage but does not belong to it", zap.Error(err))
	}
	return err == nil
}

// put stores the state of a Secret, unless the cache has a newer state.
func (c *secretCache) put(secret *corev1.Secret) {
	known, gone := c.get(secret.Name), c.gone.Get(secret.Name)
	switch {
	case known != nil && newer(known.ResourceVersion, secret.ResourceVersion):
	case gone != nil && (gone.UID == secret.UID || newer(gone.ResourceVersion, secret.ResourceVersion)):
	case known == nil && c.shown(secret.ResourceVersion):
		// The watch has already reported the deletion of the Secret, so do not store it again.
	default:
		secret.ManagedFields = nil
		c.keys = append(c.keys, changedKeys(known, secret)...)
		_ = c.secrets.Add(secret)
		c.gone.Delete(secret.Name)
	}
}

func (c *secretCache) drop(secret *corev1.Secret) {
	c.keys = append(c.keys, changedKeys(c.get(secret.Name), nil)...)
	_ = c.secrets.Delete(secret)
}

func (c *secretCache) advance(version string) {
	if c.version == "" || newer(version, c.version) {
		c.version = version
	}
}

// unlock releases the mutex, and then calls changed with the keys whose values have changed.
func (c *secretCache) unlock() {
	keys := c.keys
	c.keys = nil
	c.mu.Unlock()
	if len(keys) > 0 {
		c.changed(keys)
	}
}

// await waits until the watch has reported all writes up to a resourceVersion.
func (c *secretCache) await(ctx context.Context, version string) error {
	return wait.PollUntilContextCancel(ctx, awaitInterval, true, func(context.Context) (bool, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.shown(version), nil
	})
}

func (c *secretCache) shown(version string) bool {
	return c.version == version || newer(c.version, version)
}

// lastWritten returns the newest resourceVersion of a Secret that this process has written, or "" if it has written
// none.
func (c *secretCache) lastWritten() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wrote
}
