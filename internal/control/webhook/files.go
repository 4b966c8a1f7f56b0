package webhook

import (
	"crypto/tls"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"
)

// checkPeriod is the minimum time between two checks whether the files have changed.
const checkPeriod = time.Second

// Files is a source of certificates: two PEM files, which are read again when they change. If the files do not match,
// for example because only one of them has been written yet, the previous pair stays in use.
type Files struct {
	certificate, key string
	log              *zap.Logger

	mu      sync.Mutex
	checked time.Time
	// versions are the versions of the files that were last read. They are read again when a version changes, or when
	// the last attempt has failed, because the time of a file may be too coarse to tell two versions apart.
	versions [2]version
	pair     *tls.Certificate
	err      error
}

// version identifies the content of a file. info is nil if the file does not exist.
type version struct {
	info     os.FileInfo
	size     int64
	modified time.Time
}

func (v version) equal(other version) bool {
	return v.info != nil && other.info != nil && os.SameFile(v.info, other.info) && v.size == other.size &&
		v.modified.Equal(other.modified)
}

func versionOf(file string) version {
	info, err := os.Stat(file)
	if err != nil {
		return version{}
	}
	return version{info, info.Size(), info.ModTime()}
}

// NewFiles returns a source that reads the certificate chain and the private key from two files. The files do not have
// to exist yet.
func NewFiles(certificate, key string, log *zap.Logger) *Files {
	return &Files{certificate: certificate, key: key, log: log}
}

// GetCertificate returns the certificate for a handshake. It has the type of the field in tls.Config.
func (f *Files) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.checked) >= checkPeriod {
		f.checked = now
		f.refresh()
	}
	if f.pair == nil {
		return nil, f.err
	}
	return f.pair, nil
}

func (f *Files) refresh() {
	versions := [2]version{versionOf(f.certificate), versionOf(f.key)}
	if f.err == nil && f.pair != nil && versions[0].equal(f.versions[0]) && versions[1].equal(f.versions[1]) {
		return
	}
	pair, err := tls.LoadX509KeyPair(f.certificate, f.key)
	if err != nil {
		if f.err == nil || f.err.Error() != err.Error() {
			f.log.Error("cannot read the certificate of the admission webhook",
				zap.String("certificate", f.certificate), zap.String("key", f.key),
				zap.Bool("previous", f.pair != nil), zap.Error(err))
		}
		f.err = err
		return
	}
	f.pair, f.err, f.versions = &pair, nil, versions
	f.log.Info("the certificate of the admission webhook was read", zap.String("certificate", f.certificate),
		zap.Time("until", pair.Leaf.NotAfter))
}

// failure returns the reason why the files could not be used when they were last read, or nil.
func (f *Files) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
