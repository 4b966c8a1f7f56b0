package proxy

import (
	"errors"
	"io"
	"os"

	"github.com/k8singress/k8singress/internal/process/budget"
)

// spool is an unnamed temporary file for the part of a request or response body that does not fit into memory.
type spool struct {
	file *os.File
	size int64
	// descriptor and bytes are the shares of a namespace in the budgets for file descriptors and for bytes in files.
	// The file counts towards both.
	descriptor, bytes *budget.Share
}

var errNoRoom = errors.New("the limit for bodies in temporary files is reached")

// newSpool creates a file for a request or response body. namespace is the namespace of the backend. If newSpool
// returns an error, it has already counted the failure, and the caller must forward the body without a file.
func newSpool(namespace string) (*spool, error) {
	descriptor := bodyFiles.of(namespace)
	if !descriptor.Take(1) {
		return nil, bodyFiles.refuse()
	}
	file, err := createUnnamed()
	if err != nil {
		descriptor.Give(1)
		bodyFiles.refused.Add(1)
		return nil, err
	}
	return &spool{file: file, descriptor: descriptor, bytes: fileBytes.Share(namespace, "")}, nil
}

func createUnnamed() (*os.File, error) {
	file, err := os.CreateTemp("", "k8singress-body-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// WriteAt implements io.WriterAt. It returns errNoRoom if the limit for bytes in files is reached.
func (s *spool) WriteAt(b []byte, at int64) (int, error) {
	if more := at + int64(len(b)) - s.size; more > 0 {
		if !s.bytes.Take(more) {
			return 0, errNoRoom
		}
		s.size += more
	}
	return s.file.WriteAt(b, at)
}

// ReadAt implements io.ReaderAt.
func (s *spool) ReadAt(b []byte, at int64) (int, error) { return s.file.ReadAt(b, at) }

// Close closes the file, which also deletes it, since it has no name. Close must be called only once.
func (s *spool) Close() error {
	err := s.file.Close()
	s.bytes.Give(s.size)
	s.descriptor.Give(1)
	return err
}

// fill copies data from source to the file until the end of source, and returns the number of bytes written. If the
// limit for bytes in files is reached, fill stops, and left is the data that it has read from source but could not
// write. err is the error of reading from source.
func (s *spool) fill(source io.Reader) (size int64, left []byte, err error) {
	buffer := large.Get()
	size, left, err = s.fillWith(buffer.Bytes(), source)
	buffer.Release()
	return size, left, err
}

func (s *spool) fillWith(buffer []byte, source io.Reader) (size int64, left []byte, err error) {
	for {
		n, err := source.Read(buffer)
		written, full := s.WriteAt(buffer[:n], size)
		size += int64(written)
		switch {
		case full != nil:
			return size, append([]byte{}, buffer[written:n]...), nil
		case errors.Is(err, io.EOF):
			return size, nil, nil
		case err != nil:
			return size, nil, err
		}
	}
}
