package kubelet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	kubevolume "k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/configmap"
	"k8s.io/kubernetes/pkg/volume/downwardapi"
	"k8s.io/kubernetes/pkg/volume/secret"
	volumeutil "k8s.io/kubernetes/pkg/volume/util"
	"k8s.io/utils/ptr"
)

type payload = map[string]volumeutil.FileProjection

// volumes creates the volumes of one pod as folders of this machine. Contents from objects are written by the code of
// the real kubelet: a change swaps one symbolic link, as programs that watch their files expect.
type volumes struct {
	client kubernetes.Interface
	dir    string
	tokens map[string]issuedToken
}

type issuedToken struct {
	value []byte
	renew time.Time
}

// reference names an object in the pod's namespace, and the keys that become files.
type reference struct {
	namespace, name string
	items           []v1.KeyToPath
	mode            *int32
	optional        bool
}

// sync updates all folders. It returns their paths by the names of the volumes.
func (v *volumes) sync(ctx context.Context, pod *v1.Pod) (map[string]string, error) {
	paths := map[string]string{}
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		path, err := v.syncOne(ctx, pod, volume)
		if err != nil {
			return nil, fmt.Errorf("volume %q: %w", volume.Name, err)
		}
		paths[volume.Name] = path
	}
	return paths, nil
}

func (v *volumes) syncOne(ctx context.Context, pod *v1.Pod, volume *v1.Volume) (string, error) {
	if host := volume.HostPath; host != nil {
		if host.Type != nil && *host.Type == v1.HostPathDirectoryOrCreate {
			return host.Path, os.MkdirAll(host.Path, 0o755)
		}
		return host.Path, nil
	}
	path := filepath.Join(v.dir, volume.Name)
	if err := makeVolume(path, fsGroup(pod), volume.EmptyDir == nil); err != nil || volume.EmptyDir != nil {
		return path, err
	}
	files, err := v.files(ctx, pod, volume)
	if err != nil {
		return "", err
	}
	writer, err := volumeutil.NewAtomicWriter(path, "pod "+pod.Name)
	if err != nil {
		return "", err
	}
	return path, writer.Write(files, func(string) error { return giveToGroup(path, fsGroup(pod), true) })
}

// fsGroup returns the group of the pod's volumes, or nil.
func fsGroup(pod *v1.Pod) *int64 {
	if pod.Spec.SecurityContext == nil || oneUser() {
		return nil
	}
	return pod.Spec.SecurityContext.FSGroup
}

// makeVolume creates a folder to which all users of the pod can write, unless it exists.
func makeVolume(path string, group *int64, readOnly bool) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return err
	}
	// MkdirAll is affected by the umask of this process.
	if err := os.Chmod(path, 0o777); err != nil {
		return err
	}
	return giveToGroup(path, group, readOnly)
}

// owned implements the interface that the code of the real kubelet requires to change the group of a volume's files.
type owned struct {
	kubevolume.Mounter

	readOnly bool
}

// GetAttributes implements volume.Volume.
func (o owned) GetAttributes() kubevolume.Attributes {
	return kubevolume.Attributes{ReadOnly: o.readOnly}
}

func giveToGroup(path string, group *int64, readOnly bool) error {
	return kubevolume.NewVolumeOwnership(owned{readOnly: readOnly}, path, group, nil, nil).ChangePermissions()
}

func (v *volumes) files(ctx context.Context, pod *v1.Pod, volume *v1.Volume) (payload, error) {
	switch {
	case volume.ConfigMap != nil:
		s := volume.ConfigMap
		return v.configMap(ctx, reference{pod.Namespace, s.Name, s.Items, s.DefaultMode, ptr.Deref(s.Optional, false)})
	case volume.Secret != nil:
		s := volume.Secret
		return v.secret(ctx, reference{pod.Namespace, s.SecretName, s.Items, s.DefaultMode,
			ptr.Deref(s.Optional, false)})
	case volume.DownwardAPI != nil:
		return downward(volume.DownwardAPI.Items, pod, volume.DownwardAPI.DefaultMode)
	case volume.Projected != nil:
		return v.projected(ctx, pod, volume.Projected)
	}
	return nil, errors.New("the testbed has no volumes of this kind")
}

func (v *volumes) projected(ctx context.Context, pod *v1.Pod, source *v1.ProjectedVolumeSource) (payload, error) {
	all := payload{}
	for i := range source.Sources {
		files, err := v.projection(ctx, pod, &source.Sources[i], source.DefaultMode)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, files)
	}
	return all, nil
}

func (v *volumes) projection(ctx context.Context, pod *v1.Pod, p *v1.VolumeProjection, mode *int32) (payload, error) {
	switch {
	case p.ConfigMap != nil:
		s := p.ConfigMap
		return v.configMap(ctx, reference{pod.Namespace, s.Name, s.Items, mode, ptr.Deref(s.Optional, false)})
	case p.Secret != nil:
		s := p.Secret
		return v.secret(ctx, reference{pod.Namespace, s.Name, s.Items, mode, ptr.Deref(s.Optional, false)})
	case p.DownwardAPI != nil:
		return downward(p.DownwardAPI.Items, pod, mode)
	case p.ServiceAccountToken != nil:
		token, err := v.token(ctx, pod, p.ServiceAccountToken)
		return payload{p.ServiceAccountToken.Path: tokenFile(pod, token, *mode)}, err
	}
	return nil, errors.New("the testbed has no projections of this kind")
}

func (v *volumes) configMap(ctx context.Context, r reference) (payload, error) {
	object, err := v.client.CoreV1().ConfigMaps(r.namespace).Get(ctx, r.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && r.optional {
		object, err = &v1.ConfigMap{}, nil
	}
	if err != nil {
		return nil, err
	}
	return configmap.MakePayload(r.items, object, r.mode, r.optional)
}

func (v *volumes) secret(ctx context.Context, r reference) (payload, error) {
	object, err := v.client.CoreV1().Secrets(r.namespace).Get(ctx, r.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && r.optional {
		object, err = &v1.Secret{}, nil
	}
	if err != nil {
		return nil, err
	}
	return secret.MakePayload(r.items, object, r.mode, r.optional)
}

// downward returns the files of the downward API. It returns an error for resource fields, because they would need a
// real kubelet.
func downward(items []v1.DownwardAPIVolumeFile, pod *v1.Pod, mode *int32) (payload, error) {
	for _, item := range items {
		if item.ResourceFieldRef != nil {
			return nil, errors.New("the testbed has no files from resource fields")
		}
	}
	return downwardapi.CollectData(items, pod, nil, mode)
}

// tokenFile returns a file that only its reader can open, if the reader is known: fsGroup, or the user of all
// containers.
func tokenFile(pod *v1.Pod, token []byte, mode int32) volumeutil.FileProjection {
	file := volumeutil.FileProjection{Data: token, Mode: mode}
	if !oneUser() {
		file.FsUser = volumeutil.FsUserFrom(pod)
	}
	if file.FsUser != nil || fsGroup(pod) != nil {
		file.Mode = 0o600
	}
	return file
}

// token returns a token that is bound to the pod. It requests a new token after four fifths of the lifetime of the
// previous one.
func (v *volumes) token(ctx context.Context, pod *v1.Pod, p *v1.ServiceAccountTokenProjection) ([]byte, error) {
	key := p.Audience + "/" + p.Path
	if known, ok := v.tokens[key]; ok && time.Now().Before(known.renew) {
		return known.value, nil
	}
	request := &authv1.TokenRequest{Spec: authv1.TokenRequestSpec{
		ExpirationSeconds: p.ExpirationSeconds,
		BoundObjectRef:    &authv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	if p.Audience != "" {
		request.Spec.Audiences = []string{p.Audience}
	}
	accounts := v.client.CoreV1().ServiceAccounts(pod.Namespace)
	answer, err := accounts.CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("requesting a token: %w", err)
	}
	life := time.Until(answer.Status.ExpirationTimestamp.Time)
	v.tokens[key] = issuedToken{value: []byte(answer.Status.Token), renew: time.Now().Add(life * 4 / 5)}
	return v.tokens[key].value, nil
}
