package oci

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"
)

// The names with which a layer removes files of lower layers.
const (
	whiteout = ".wh."
	opaque   = whiteout + whiteout + ".opq"
)

// capabilities is the extended attribute with the capabilities of a file. capabilityRecord is its name in an archive.
const (
	capabilities     = "security.capability"
	capabilityRecord = "SCHILY.xattr." + capabilities
)

// Unpack writes the files of the image to a folder, which it creates. Without owners, all files belong to the user of
// this process and have no capabilities, because a user namespace with one user does not support them.
func (i *Image) Unpack(folder string, owners bool) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, layer := range i.layers {
		u := &unpacker{root: root, owners: owners, written: map[string]bool{}}
		if err := i.unpackLayer(u, layer.Digest); err != nil {
			return fmt.Errorf("unpacking the layer %s: %w", layer.Digest, err)
		}
	}
	return nil
}

func (i *Image) unpackLayer(u *unpacker, d digest.Digest) error {
	name, err := i.path(d)
	if err != nil {
		return err
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	verifier := d.Verifier()
	compressed := io.TeeReader(file, verifier)
	content, err := decompress(compressed)
	if err != nil {
		return err
	}
	if err := u.unpack(tar.NewReader(content)); err != nil {
		return err
	}
	// The checksum covers what follows the archive, too.
	if _, err := io.Copy(io.Discard, compressed); err != nil {
		return err
	}
	if !verifier.Verified() {
		return errors.New("wrong content of " + name)
	}
	return nil
}

// decompress also accepts uncompressed archives.
func decompress(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(r)
	if magic, err := buffered.Peek(2); err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return buffered, err
	}
	return gzip.NewReader(buffered)
}

// unpacker writes one layer over the lower ones.
type unpacker struct {
	root   *os.Root
	owners bool
	// written has the names in this layer and their folders. They are not removed.
	written map[string]bool
}

func (u *unpacker) unpack(archive *tar.Reader) error {
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		h.Name = strings.TrimPrefix(path.Clean("/"+h.Name), "/")
		if h.Name == "" {
			continue
		}
		if err := u.entry(h, archive); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

func (u *unpacker) entry(h *tar.Header, content io.Reader) error {
	folder, name := path.Split(h.Name)
	if name == opaque {
		return u.clear(path.Clean(folder))
	}
	if removed, ok := strings.CutPrefix(name, whiteout); ok {
		if removed == "" || removed == "." || removed == ".." {
			return fmt.Errorf("it removes %q, which names no file", removed)
		}
		return u.root.RemoveAll(path.Join(folder, removed))
	}
	for name := h.Name; name != "."; name = path.Dir(name) {
		u.written[name] = true
	}
	if folder != "" {
		if err := u.root.MkdirAll(path.Clean(folder), 0o755); err != nil {
			return err
		}
	}
	if err := u.write(h, content); err != nil {
		return err
	}
	return u.describe(h)
}

// clear removes the files of lower layers in a folder and its subfolders.
func (u *unpacker) clear(folder string) error {
	entries, err := fs.ReadDir(u.root.FS(), folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, remove := path.Join(folder, e.Name()), u.root.RemoveAll
		switch {
		case u.written[name] && e.IsDir():
			remove = u.clear
		case u.written[name]:
			continue
		}
		if err := remove(name); err != nil {
			return err
		}
	}
	return nil
}

// write replaces what lower layers have at the same path, except that folders are merged.
func (u *unpacker) write(h *tar.Header, content io.Reader) error {
	if there, err := u.root.Lstat(h.Name); err == nil && there.IsDir() && h.Typeflag == tar.TypeDir {
		return nil
	}
	if err := u.root.RemoveAll(h.Name); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return u.root.Mkdir(h.Name, 0o755)
	case tar.TypeSymlink:
		return u.root.Symlink(h.Linkname, h.Name)
	case tar.TypeLink:
		return u.root.Link(strings.TrimPrefix(path.Clean("/"+h.Linkname), "/"), h.Name)
	case tar.TypeReg:
		return u.writeFile(h.Name, content)
	}
	return fmt.Errorf("files of the type %q are not known here", h.Typeflag)
}

func (u *unpacker) writeFile(name string, content io.Reader) error {
	file, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// describe sets the metadata. The owner must be set first, because this removes the setuid bits and the capabilities.
func (u *unpacker) describe(h *tar.Header) error {
	if h.Typeflag == tar.TypeLink {
		return nil
	}
	if u.owners {
		if err := u.root.Lchown(h.Name, h.Uid, h.Gid); err != nil {
			return err
		}
	}
	if h.Typeflag == tar.TypeSymlink {
		return nil
	}
	if err := u.root.Chmod(h.Name, h.FileInfo().Mode()); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeReg {
		if err := u.root.Chtimes(h.Name, h.ModTime, h.ModTime); err != nil {
			return err
		}
	}
	if value, ok := h.PAXRecords[capabilityRecord]; ok && u.owners {
		return u.setCapabilities(h.Name, value)
	}
	return nil
}

func (u *unpacker) setCapabilities(name, value string) error {
	file, err := u.root.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.Fsetxattr(int(file.Fd()), capabilities, []byte(value), 0)
}
