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
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate"
)

// Compose returns a complete Caddy configuration in JSON form: the servers and settings that the options require, and
// the live configuration with hosts, routes and backends. It omits the option that selects the source of Kubernetes
// objects, because a process that loads the result serves only the live configuration in it.
func Compose(o settings.Config, live *document.Live) map[string]any {
	o.Source = nil
	whole := structure.Structure(o)
	app := maps.Clone(structure.Branch(whole, "apps", "k8singress"))
	app["live"] = live
	structure.Branch(whole, "apps")["k8singress"] = app
	return whole
}

// wholeDocument is the part of a Caddy configuration that Split reads. It omits servers and TLS policies, because they
// can be derived from the options of the app.
type wholeDocument struct {
	Apps struct {
		K8singress *struct {
			settings.Config
			Live *document.Live `json:"live"`
		} `json:"k8singress"`
	} `json:"apps"`
}

// Split is the inverse of Compose: it returns the options and the live configuration in a Caddy configuration. It
// returns an error if the options tell the process to read Kubernetes objects.
func Split(raw []byte) (settings.Config, *document.Live, error) {
	var whole wholeDocument
	if err := json.Unmarshal(raw, &whole); err != nil {
		return settings.Config{}, nil, fmt.Errorf("decoding the document: %w", err)
	}
	app := whole.Apps.K8singress
	switch {
	case app == nil || app.Live == nil:
		return settings.Config{}, nil, errors.New("the configuration does not contain apps.k8singress.live")
	case app.Source != nil:
		return settings.Config{}, nil, errors.New(
			"the configuration contains \"source\", but only a process without a source of Kubernetes objects can " +
				"load a configuration: remove \"source\" from the configuration")
	}
	return app.Config, app.Live, nil
}

// Offline is the result of processing a folder of manifests without serving requests.
type Offline struct {
	Objects  *snapshot.Snapshot
	Settings settings.Config
	Document *document.Live
	// Followed are the backends of the Services that the administrator's configuration of Caddy uses.
	Followed []ir.FollowedBackend
	Report   *report.Report
}

// RunOffline reads a folder of manifests and processes its objects like Carry.
func RunOffline(folder string, o settings.Config, followed ...ir.FollowedPort) (*Offline, error) {
	s, verdicts, err := files.Load(folder)
	if err != nil {
		return nil, err
	}
	return Carry(s, verdicts, o, followed...), nil
}

// Carry translates Kubernetes objects into a live configuration like a running controller, but does not serve it.
// verdicts are the problems that were found while reading the objects; they are added to the result. followed are the
// ports of Services that the administrator's configuration of Caddy uses, sorted. Carry does not modify the objects.
func Carry(s *snapshot.Snapshot, verdicts []*report.Verdict, o settings.Config, followed ...ir.FollowedPort) *Offline {
	t := options(o)
	t.Followed = followed
	t.Ingress.Folder, t.Streams.Services.Folder = true, true
	config, translated := translate.Translate(s, t)
	live := newRenderer(o, s).Live(config)
	return &Offline{
		Objects: s, Settings: o, Document: live, Followed: config.Followed,
		Report: translated.With(verdicts).With(checkCertificates(s, live)).With(checkSlices(s, o)),
	}
}

// checkCertificates returns the problems of the Secrets with certificates to which the live configuration refers.
func checkCertificates(s *snapshot.Snapshot, d *document.Live) []*report.Verdict {
	secrets := apply.NewSecrets()
	secrets.Certificates.Update(d.Certificates)
	for _, name := range secrets.Update(document.Diff(nil, d)) {
		loadSecret(secrets, s, name)
	}
	loadSecrets(secrets, s, d.Certificates)
	return secrets.Problems()
}
