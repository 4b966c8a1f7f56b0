package engine

import (
	"github.com/k8singress/k8singress/internal/apply"
	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/files"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/settings"
	"github.com/k8singress/k8singress/internal/snapshot"
	"github.com/k8singress/k8singress/internal/translate"
)

// Offline is what a folder of manifests becomes.
type Offline struct {
	Objects  *snapshot.Snapshot
	Settings settings.Config
	Document *document.Live
	Report   *report.Report
}

// RunOffline reads a folder of manifests, and carries it as Carry does.
func RunOffline(folder string, o settings.Config) (*Offline, error) {
	s, verdicts, err := files.Load(folder)
	if err != nil {
		return nil, err
	}
	return Carry(s, verdicts, o), nil
}

// Carry carries objects through the same pipeline that a running controller has, up to the point where they would be
// applied. verdicts are those of the source. It changes no object.
func Carry(s *snapshot.Snapshot, verdicts []*report.Verdict, o settings.Config) *Offline {
	t := options(o)
	t.Ingress.Folder, t.Streams.Services.Folder = true, true
	config, translated := translate.Translate(s, t)
	live := newRenderer(o, s).Live(config)
	return &Offline{
		Objects: s, Settings: o, Document: live,
		Report: translated.With(verdicts).With(checkCertificates(s, live)),
	}
}

// checkCertificates reads the Secrets that the document names.
func checkCertificates(s *snapshot.Snapshot, d *document.Live) []*report.Verdict {
	secrets := apply.NewSecrets()
	secrets.Certificates.Update(d.Certificates)
	for _, name := range secrets.Trust.Update(document.Diff(nil, d)) {
		loadSecret(secrets, s, name)
	}
	loadSecrets(secrets, s, d.Certificates)
	return secrets.Problems()
}
