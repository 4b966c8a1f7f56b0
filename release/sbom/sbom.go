// Package sbom writes an SPDX document that lists the Go modules in a binary. Go stores this list in the binary, so it
// contains only the modules that are linked into the binary, and not all modules in go.mod.
package sbom

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

const (
	project     = "https://github.com/k8singress/k8singress"
	noAssertion = "NOASSERTION"
	// programID is the SPDX identifier of the binary.
	programID = common.ElementID("Program")
)

// Program describes a compiled binary.
type Program struct {
	// File is the file name under which the binary is published. SHA256 is the hash of the binary in hexadecimal.
	File, SHA256 string
	// Version is the version of the release. It is required, because Go does not store the version in a binary that is
	// built from a checkout.
	Version string
	// Created is the creation time of the SPDX document. It is used instead of the current time, so that builds are
	// reproducible.
	Created time.Time
	Info    *buildinfo.BuildInfo
}

// Write writes the SPDX document for a binary as JSON. The same p results in the same bytes.
func Write(w io.Writer, p Program) error {
	document := &v2_3.Document{
		SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName: p.File, DocumentNamespace: project + "/spdx/" + p.File + "-" + p.SHA256,
		CreationInfo: &v2_3.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "k8singress-release"},
				{CreatorType: "Organization", Creator: "k8singress"}},
			Created: p.Created.UTC().Format(time.RFC3339),
		},
		Packages:      []*spdx.Package{p.described()},
		Relationships: []*spdx.Relationship{relation("DOCUMENT", common.TypeRelationshipDescribe, programID)},
	}
	for _, m := range p.modules() {
		described := module(m)
		document.Packages = append(document.Packages, described)
		document.Relationships = append(document.Relationships,
			relation(programID, common.TypeRelationshipDependsOn, described.PackageSPDXIdentifier))
	}
	if err := json.Write(document, w, json.Indent("\t")); err != nil {
		return fmt.Errorf("writing the SBOM of %s: %w", p.File, err)
	}
	return nil
}

func relation(a common.ElementID, kind string, b common.ElementID) *spdx.Relationship {
	return &spdx.Relationship{RefA: common.DocElementID{ElementRefID: a}, Relationship: kind,
		RefB: common.DocElementID{ElementRefID: b}}
}

// described returns the SPDX package that describes the binary.
func (p Program) described() *spdx.Package {
	return &spdx.Package{
		PackageName: p.Info.Main.Path, PackageSPDXIdentifier: programID, PackageVersion: p.Version,
		PackageFileName:         p.File,
		PackageDownloadLocation: "git+" + project, PackageHomePage: project, PrimaryPackagePurpose: "APPLICATION",
		PackageChecksums:        []common.Checksum{{Algorithm: common.SHA256, Value: p.SHA256}},
		PackageLicenseConcluded: noAssertion, PackageLicenseDeclared: "Apache-2.0", PackageCopyrightText: noAssertion,
		PackageExternalReferences: []*spdx.PackageExternalReference{purl(p.Info.Main.Path, p.Version)},
	}
}

// modules returns the modules in the binary, except the main module. Go's standard library is included as the first
// module.
func (p Program) modules() []*debug.Module {
	modules := []*debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(p.Info.GoVersion, "go")}}
	for _, m := range p.Info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules = append(modules, m)
	}
	return modules
}

func module(m *debug.Module) *spdx.Package {
	described := &spdx.Package{
		PackageName: m.Path, PackageSPDXIdentifier: identifier(m), PackageVersion: m.Version,
		PackageDownloadLocation: noAssertion,
		PackageLicenseConcluded: noAssertion, PackageLicenseDeclared: noAssertion, PackageCopyrightText: noAssertion,
		PrimaryPackagePurpose:     "LIBRARY",
		PackageExternalReferences: []*spdx.PackageExternalReference{purl(m.Path, m.Version)},
	}
	if m.Sum != "" {
		// Do not store this hash as an SPDX checksum: it is Go's hash of all files of the module, and not the hash of a
		// single file.
		described.PackageSourceInfo = "go.sum: " + m.Sum
	}
	return described
}

// identifier returns the SPDX identifier for a module. Such identifiers may only contain letters, digits, dots and
// hyphens.
func identifier(m *debug.Module) common.ElementID {
	text := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, m.Path+"-"+m.Version)
	return common.ElementID("Module-" + text)
}

// purl returns the package URL of a module as an SPDX reference. Vulnerability scanners identify modules by package
// URL.
func purl(path, version string) *spdx.PackageExternalReference {
	return &spdx.PackageExternalReference{
		Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
		Locator: "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B"),
	}
}
