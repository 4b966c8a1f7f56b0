package kubelet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	utilsysctl "k8s.io/component-helpers/node/util/sysctl"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/kubelet/sysctl"
)

// refusal returns the reason if the real kubelet would reject a pod, because of a sysctl that is not safe or does not
// belong to the pod's namespaces.
func refusal(ctx context.Context, pod *v1.Pod) (reason, message string, err error) {
	safe, err := sysctl.NewAllowlist(sysctl.SafeSysctlAllowlist(ctx))
	if err != nil {
		return "", "", err
	}
	result := safe.Admit(&lifecycle.PodAdmitAttributes{Pod: pod})
	return result.Reason, result.Message, nil
}

// setSysctls sets the sysctls of a pod's network.
func (w *podWorker) setSysctls() error {
	pod := w.current()
	if pod.Spec.SecurityContext == nil || len(pod.Spec.SecurityContext.Sysctls) == 0 {
		return nil
	}
	return w.namespace.Do(func() error {
		for _, s := range pod.Spec.SecurityContext.Sysctls {
			name := utilsysctl.NormalizeName(s.Name)
			if !strings.HasPrefix(name, "net.") {
				return fmt.Errorf("sysctl %s: the testbed knows those of the network", name)
			}
			file := filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/"))
			if err := os.WriteFile(file, []byte(s.Value), 0o644); err != nil {
				return fmt.Errorf("setting the sysctl %s: %w", name, err)
			}
		}
		return nil
	})
}
