package image

import (
	"archive/tar"
	"fmt"
	"io"
	"time"
)

// User is the number of the user and the group that the image runs as. It is the one of ingress-nginx, so that values
// and volumes that were written for its pods fit.
const User = 101

// Program is the path of the one program in the image.
const Program = "/usr/bin/caddy"

// DataFolder is where Caddy keeps what only this pod needs: XDG_DATA_HOME and XDG_CONFIG_HOME in the image.
const DataFolder = "/data"

// capabilityRecord is the name that tar has for the extended attribute with the capabilities of a file.
const capabilityRecord = "SCHILY.xattr.security.capability"

// netBindService is the value of that attribute for cap_net_bind_service+ep: struct vfs_cap_data of linux/capability.h
// in the second version, little-endian, with the flag for effective and the bit of CAP_NET_BIND_SERVICE (10) among the
// permitted ones. By it a process of another user than root may listen on ports below 1024, also in the network of the
// node.
const netBindService = "\x01\x00\x00\x02" + "\x00\x04\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00" +
	"\x00\x00\x00\x00"

// accounts give names to the user of the image and to root, for programs that ask for them.
const (
	passwd = "root:x:0:0:root:/:/sbin/nologin\nwww-data:x:101:101:k8singress:/data:/sbin/nologin\n"
	group  = "root:x:0:\nwww-data:x:101:\n"
)

// entry is one file of the image, in the order in which they are written: folders come before what is in them.
type entry struct {
	path string
	kind byte
	mode int64
	// owner is the number of user and group.
	owner int
	// target is where a link leads to.
	target string
	// content is that of a small file; the program's comes from outside.
	content string
}

// entries are the whole image. The links are the programs in the image of ingress-nginx that its pods call.
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

// writeTree writes the files of the image as a tar archive. The same program and time give the same bytes.
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
