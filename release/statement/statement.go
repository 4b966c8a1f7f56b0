// Package statement describes how the files of a release were built, as an in-toto statement with SLSA provenance. It
// does not sign the statement; the person who publishes the release must do so.
package statement

import (
	"encoding/json"
	"fmt"
	"io"
)

const (
	repository = "https://github.com/k8singress/k8singress"
	// described is the URL of the documentation of the build parameters.
	described = repository + "/blob/main/docs/build.md#a-release"
)

// Subject is a file of the release or the image, together with its hashes.
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// Build holds the build parameters. The same parameters result in the same bytes of all files.
type Build struct {
	// Version is the version of the source, and Revision is the hash of the commit. Revision is empty outside of a git
	// repository.
	Version, Revision string
	// Go is the version of Go with which the binaries were compiled.
	Go string
	// Commands maps platforms to the command that compiled the binary. A command is a list of environment variables
	// followed by the arguments.
	Commands map[string][]string
}

type document struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     predicate `json:"predicate"`
}

type predicate struct {
	BuildDefinition struct {
		BuildType            string              `json:"buildType"`
		ExternalParameters   map[string]string   `json:"externalParameters"`
		InternalParameters   map[string][]string `json:"internalParameters"`
		ResolvedDependencies []dependency        `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

type dependency struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

// Write writes the statement. It contains neither the current time nor data about the build machine, so that a second
// build results in the same bytes.
func Write(w io.Writer, subjects []Subject, b Build) error {
	d := document{Type: "https://in-toto.io/Statement/v1", Subject: subjects,
		PredicateType: "https://slsa.dev/provenance/v1"}
	definition := &d.Predicate.BuildDefinition
	definition.BuildType = described
	definition.ExternalParameters = map[string]string{"source": "git+" + repository, "version": b.Version,
		"target": "release"}
	definition.InternalParameters = b.Commands
	source := dependency{URI: "git+" + repository}
	if b.Revision != "" {
		source.Digest = map[string]string{"gitCommit": b.Revision}
	}
	definition.ResolvedDependencies = []dependency{source, {Name: "go", URI: "pkg:golang/toolchain@" + b.Go}}
	d.Predicate.RunDetails.Builder.ID = described
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "\t")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(d); err != nil {
		return fmt.Errorf("writing the provenance: %w", err)
	}
	return nil
}
