package kubestorage

import (
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/k8singress/k8singress/internal/kubeclient"
)

// logInterval is how long a failing list or watch logs nothing more.
const logInterval = time.Minute

// source lists and watches the objects with the label of the storage in its namespace. It asks again while the API server
// is away.
func (s *Storage) source(client rest.Interface, resource string) cache.ListerWatcher {
	source := cache.NewFilteredListWatchFromClient(client, resource, s.namespace,
		func(o *metav1.ListOptions) { o.LabelSelector = selector })
	logged := rate.Sometimes{Interval: logInterval}
	return kubeclient.Patient(source, func(err error) {
		logged.Do(func() {
			s.log.Warn("cannot read the "+resource+" of the storage: the last known ones stay in use, and the request is repeated",
				zap.String("namespace", s.namespace), zap.Error(err))
		})
	})
}
