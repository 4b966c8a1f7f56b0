package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/k8singress/k8singress/internal/control/apply"
	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/kube/files"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate"
)

// Compose joins the structure and the live part into one Caddy document. The document does not contain the source of
// the objects, because a process that loads it serves only its contents.
func Compose(o settings.Config, live *document.Live) map[string]any {
	o.Source = nil
	whole := structure.Structure(o)
	app := maps.Clone(structure.Branch(whole, "apps", "k8singress"))
	app["live"] = live
	structure.Branch(whole, "apps")["k8singress"] = app
	return whole
}

// wholeDocument is the part of a Caddy document that Split reads. It omits the servers and policies, because they are
// derived from the options of the app.
type wholeDocument struct {
	Apps struct {
		K8singress *struct {
			settings.Config
			Live *document.Live `json:"live"`
		} `json:"k8singress"`
	} `json:"apps"`
}

// Split is the inverse of Compose. It returns an error if the document names a source.
func Split(raw []byte) (settings.Config, *document.Live, error) {
	var whole wholeDocument
	if err := json.Unmarshal(raw, &whole); err != nil {
		return settings.Config{}, nil, fmt.Errorf("decoding the document: %w", err)
	}
	app := whole.Apps.K8singress
	switch {
	case app == nil || app.Live == nil:
		return settings.Config{}, nil, errors.New("the document has no apps.k8singress.live")
	case app.Source != nil:
		return settings.Config{}, nil, errors.New(
			"the document names a source of objects, but a process with a source accepts no documents: remove " +
				"\"source\" from the document")
	}
	return app.Config, app.Live, nil
}

// Offline is the result of processing a folder of manifests.
type Offline struct {
	Objects  *snapshot.Snapshot
	Settings settings.Config
	Document *document.Live
	Report   *report.Report
}

// RunOffline reads a folder of manifests and processes the objects with Carry.
func RunOffline(folder string, o settings.Config) (*Offline, error) {
	s, verdicts, err := files.Load(folder)
	if err != nil {
		return nil, err
	}
	return Carry(s, verdicts, o), nil
}

// Carry processes objects with the same pipeline as a running controller, except that nothing is applied. verdicts are
// the verdicts of the source. Carry does not change the objects.
func Carry(s *snapshot.Snapshot, verdicts []*report.Verdict, o settings.Config) *Offline {
	t := options(o)
	t.Ingress.Folder, t.Streams.Services.Folder = true, true
	config, translated := translate.Translate(s, t)
	live := newRenderer(o, s).Live(config)
	return &Offline{
		Objects: s, Settings: o, Document: live,
		Report: translated.With(verdicts).With(checkCertificates(s, live)).With(checkSlices(s, o)),
	}
}

// checkCertificates returns the verdicts on the Secrets that the document names.
func checkCertificates(s *snapshot.Snapshot, d *document.Live) []*report.Verdict {
	secrets := apply.NewSecrets()
	secrets.Certificates.Update(d.Certificates)
	for _, name := range secrets.Update(document.Diff(nil, d)) {
		loadSecret(secrets, s, name)
	}
	loadSecrets(secrets, s, d.Certificates)
	return secrets.Problems()
}
