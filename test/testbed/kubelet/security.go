package kubelet

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/securitycontext"
	"k8s.io/utils/ptr"
)

// privileges are the privileges of a container's processes, in the terms of the kernel.
type privileges struct {
	UID, GID int
	Groups   []int
	// Capabilities has a bit for each capability.
	Capabilities    uint64
	NoNewPrivileges bool
	// Home is the home folder of the user.
	Home string
}

// protection describes which files a container cannot see or change.
type protection struct {
	ReadOnlyRoot          bool
	Privileged            bool
	MaskedPaths, ReadOnly []string
}

// security reads the securityContext of a container and of its pod. As with kubelet and containerd, the container takes
// precedence.
func security(pod *v1.Pod, c *v1.Container, image Image) (privileges, protection, error) {
	context := securitycontext.DetermineEffectiveSecurityContext(pod, c)
	privileged := ptr.Deref(context.Privileged, false)
	guard := protection{ReadOnlyRoot: ptr.Deref(context.ReadOnlyRootFilesystem, false), Privileged: privileged}
	if !privileged {
		guard.MaskedPaths = securitycontext.ConvertToRuntimeMaskedPaths(context.ProcMount)
		guard.ReadOnly = securitycontext.ConvertToRuntimeReadonlyPaths(context.ProcMount)
	}
	p, err := identity(pod, c, context, image)
	p.Capabilities = capabilitySet(context.Capabilities, privileged)
	p.NoNewPrivileges = securitycontext.AddNoNewPrivileges(context)
	return p, guard, err
}

// identity returns the user and its groups. It returns an error if the container must not run as that user.
func identity(pod *v1.Pod, c *v1.Container, context *v1.SecurityContext, image Image) (privileges, error) {
	all, err := readAccounts(image.Root)
	if err != nil {
		return privileges{}, err
	}
	// An image may name a group after its user. The group gets lost between containerd and kubelet, so it is ignored
	// here, too.
	name, _, _ := strings.Cut(image.Config.User, ":")
	if err := verifyNonRoot(pod, c, context, name); err != nil {
		return privileges{}, failure{"CreateContainerConfigError", err}
	}
	user, err := all.user(name, context.RunAsUser)
	if err != nil {
		return privileges{}, failure{"CreateContainerError", err}
	}
	p := privileges{UID: user.uid, GID: user.gid, Home: user.home}
	if context.RunAsGroup != nil {
		p.GID = int(*context.RunAsGroup)
	}
	p.Groups = append([]int{p.GID}, supplementalGroups(pod.Spec.SecurityContext, all.groupsOf(user.name))...)
	if oneUser() {
		p.UID, p.GID, p.Groups = 0, 0, nil
	}
	return p, nil
}

// user returns the user that the pod requests. If it requests none, user returns the user of the image.
func (a accounts) user(image string, demanded *int64) (account, error) {
	if demanded != nil {
		return a.byID(int(*demanded)), nil
	}
	if uid, err := strconv.Atoi(cmp.Or(image, "0")); err == nil {
		return a.byID(uid), nil
	}
	user, ok := a.byName(image)
	if !ok {
		return user, fmt.Errorf("unable to find user %s: no matching entries in passwd file", image)
	}
	return user, nil
}

func supplementalGroups(context *v1.PodSecurityContext, ofImage []int) []int {
	if context == nil {
		return ofImage
	}
	var groups []int
	if ptr.Deref(context.SupplementalGroupsPolicy,
		v1.SupplementalGroupsPolicyMerge) == v1.SupplementalGroupsPolicyMerge {
		groups = ofImage
	}
	if context.FSGroup != nil {
		groups = append(groups, int(*context.FSGroup))
	}
	for _, group := range context.SupplementalGroups {
		groups = append(groups, int(group))
	}
	return slices.Compact(slices.Sorted(slices.Values(groups)))
}

// verifyNonRoot returns the same errors as the function of the kubelet, which is not exported.
func verifyNonRoot(pod *v1.Pod, c *v1.Container, context *v1.SecurityContext, user string) error {
	if !ptr.Deref(context.RunAsNonRoot, false) {
		return nil
	}
	what := ""
	uid, err := strconv.Atoi(cmp.Or(user, "0"))
	switch {
	case context.RunAsUser != nil && *context.RunAsUser == 0:
		what = "container's runAsUser breaks non-root policy"
	case context.RunAsUser != nil:
		return nil
	case err != nil:
		what = fmt.Sprintf(
			"container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root", user)
	case uid == 0:
		what = "container has runAsNonRoot and image will run as root"
	default:
		return nil
	}
	return fmt.Errorf("%s (pod: \"%s_%s(%s)\", container: %s)", what, pod.Name, pod.Namespace, pod.UID, c.Name)
}
