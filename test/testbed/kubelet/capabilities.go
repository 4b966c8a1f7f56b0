package kubelet

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// capabilityNames are the names in linux/capability.h, by number.
var capabilityNames = strings.Fields(`
	        CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE
	NET_BIND_SERVICE NET_BROADCAST NET_ADMIN         NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT
	SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME         SYS_TTY_CONFIG MKNOD LEASE
	AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON
	BPF CHECKPOINT_RESTORE`)

// usualCapabilities are the capabilities that containerd gives to a container by default.
var usualCapabilities = capabilityBits([]v1.Capability{
	"CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP",
	"NET_BIND_SERVICE", "SYS_CHROOT",
	"KILL", "AUDIT_WRITE",
})

// capabilitySet adds and drops capabilities like containerd: ALL is applied first, regardless of the order in the
// manifest.
func capabilitySet(asked *v1.Capabilities, privileged bool) uint64 {
	everything := uint64(1)<<len(capabilityNames) - 1
	if privileged {
		return everything
	}
	set := usualCapabilities
	if asked == nil {
		return set
	}
	if hasAll(asked.Add) {
		set = everything
	}
	if hasAll(asked.Drop) {
		set = 0
	}
	set |= capabilityBits(asked.Add)
	return set &^ capabilityBits(asked.Drop)
}

func hasAll(names []v1.Capability) bool {
	return slices.ContainsFunc(names, func(name v1.Capability) bool { return strings.EqualFold(string(name), "ALL") })
}

// capabilityBits ignores unknown names, like runc.
func capabilityBits(names []v1.Capability) (set uint64) {
	for _, name := range names {
		if i := slices.Index(capabilityNames, strings.ToUpper(string(name))); i >= 0 {
			set |= 1 << i
		}
	}
	return set
}
