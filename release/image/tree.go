package image

import (
	"archive/tar"
	"fmt"
	"io"
	"time"
)

// User is the user ID and the group ID of the process in the container. ingress-nginx uses the same ID, so Helm values
// and volumes for its pods keep working.
const User = 101

// Program is the path of the binary in the image. The image contains no other programs.
const Program = "/usr/bin/caddy"

// DataFolder is the folder for Caddy's data and configuration that are not shared with other pods. The environment
// variables XDG_DATA_HOME and XDG_CONFIG_HOME of the image are set to it.
const DataFolder = "/data"

// capabilityRecord is the name of the tar record that holds the Linux capabilities of a file, which are stored in an
// extended attribute.
const capabilityRecord = "SCHILY.xattr.security.capability"

// netBindService is the value of capabilityRecord for cap_net_bind_service+ep, encoded as a struct vfs_cap_data
// (version 2, see linux/capability.h): the effective flag is set, and the permitted set contains CAP_NET_BIND_SERVICE
// (10). This capability allows a process that does not run as root to listen on ports below 1024, even in the host
// network.
const netBindService = "\x01\x00\x00\x02" + "\x00\x04\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00" +
	"\x00\x00\x00\x00"

// passwd and group are the contents of /etc/passwd and /etc/group. They define names for root and for the user of the
// image, because some programs look up user names.
const (
	passwd = "root:x:0:0:root:/:/sbin/nologin\nwww-data:x:101:101:k8singress:/data:/sbin/nologin\n"
	group  = "root:x:0:\nwww-data:x:101:\n"
)

// entry is one file, folder or symbolic link in the image. Entries are written in order, so a folder must precede its
// contents.
type entry struct {
	path string
	kind byte
	mode int64
	// owner is both the user ID and the group ID of the file.
	owner int
	// target is the target of a symbolic link. It is empty for files and folders.
	target string
	// content is the content of a small file. It is empty for the binary, whose content is added by writeTree.
	content string
}

// entries lists all files, folders and links of the image. The links make the binary available at the paths of the
// programs in the image of ingress-nginx, because existing pods run these programs.
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

// writeTree writes the files of the image as a tar archive. program is the content of the binary. The same binary and
// time result in the same bytes.
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
