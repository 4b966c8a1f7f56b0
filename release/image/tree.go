package image

import (
	"archive/tar"
	"fmt"
	"io"
	"time"
)

// User is the user ID and group ID of the process. They are the same as in ingress-nginx, so that Helm values and
// volumes for its pods keep working.
const User = 101

// Program is the path of the only binary in the image.
const Program = "/usr/bin/caddy"

// DataFolder is the folder for Caddy's data and configuration that only this pod needs. The image sets XDG_DATA_HOME
// and XDG_CONFIG_HOME to it.
const DataFolder = "/data"

// capabilityRecord is the name in tar archives for the extended attribute with the capabilities of a file.
const capabilityRecord = "SCHILY.xattr.security.capability"

// netBindService is the value of that attribute for cap_net_bind_service+ep. It is a struct vfs_cap_data of
// linux/capability.h in version 2, little-endian, with the effective flag and the bit of CAP_NET_BIND_SERVICE (10) in
// the permitted set. With it, a process that does not run as root can listen on ports below 1024, also in the network
// of the node.
const netBindService = "\x01\x00\x00\x02" + "\x00\x04\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00" +
	"\x00\x00\x00\x00"

// passwd and group are files in /etc. They name root and the user of the image, for programs that look up names.
const (
	passwd = "root:x:0:0:root:/:/sbin/nologin\nwww-data:x:101:101:k8singress:/data:/sbin/nologin\n"
	group  = "root:x:0:\nwww-data:x:101:\n"
)

// entry is one file, folder or link of the image. A folder is listed before its contents, because entries are written
// in this order.
type entry struct {
	path string
	kind byte
	mode int64
	// owner is the user ID and group ID.
	owner int
	// target is the target of a link. It is empty for other entries.
	target string
	// content is the content of a small file. The content of the binary is added when the archive is written.
	content string
}

// entries lists all files of the image. The links have the paths of the programs that pods of ingress-nginx call.
var entries = []entry{
	{path: "data/", kind: tar.TypeDir, mode: 0o700, owner: User},
	{path: "etc/", kind: tar.TypeDir, mode: 0o755},
	{path: "etc/group", kind: tar.TypeReg, mode: 0o644, content: group},
	{path: "etc/passwd", kind: tar.TypeReg, mode: 0o644, content: passwd},
	{path: "nginx-ingress-controller", kind: tar.TypeSymlink, mode: 0o777, target: Program},
	{path: "tmp/", kind: tar.TypeDir, mode: 0o1777},
	{path: "usr/", kind: tar.TypeDir, mode: 0o755},
	{path: "usr/bin/", kind: tar.TypeDir, mode: 0o755},
	{path: Program[1:], kind: tar.TypeReg, mode: 0o755},
	{path: "wait-shutdown", kind: tar.TypeSymlink, mode: 0o777, target: Program},
}

// writeTree writes the files of the image as a tar archive. The same binary and time result in the same bytes.
func writeTree(w io.Writer, program []byte, at time.Time) error {
	archive := tar.NewWriter(w)
	for _, e := range entries {
		content := []byte(e.content)
		if "/"+e.path == Program {
			content = program
		}
		if err := archive.WriteHeader(e.header(len(content), at)); err != nil {
			return fmt.Errorf("writing %s: %w", e.path, err)
		}
		if _, err := archive.Write(content); err != nil {
			return fmt.Errorf("writing %s: %w", e.path, err)
		}
	}
	return archive.Close()
}

func (e entry) header(size int, at time.Time) *tar.Header {
	h := &tar.Header{
		Typeflag: e.kind, Name: e.path, Linkname: e.target, Mode: e.mode, Uid: e.owner, Gid: e.owner,
		Size: int64(size), ModTime: at,
		Format: tar.FormatPAX,
	}
	if "/"+e.path == Program {
		h.PAXRecords = map[string]string{capabilityRecord: netBindService}
	}
	return h
}
