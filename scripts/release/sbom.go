package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"

	"github.com/littoral-project/littoral/scripts/licences"
)

const ours = "github.com/littoral-project/littoral"

var (
	noID       = regexp.MustCompile(`[^A-Za-z0-9.-]+`)
	listed     map[string]string // module -> its licences as SPDX writes them
	expression = strings.NewReplacer("AGPL", "AGPL-3.0-only", "LGPL", "LGPL-3.0-only", "GPL", "GPL-3.0-only", "Public domain", "NONE")
)

// sbom writes the SBOM of a program, from what the linker recorded in it: what is in the program, rather than what might be.
func (r *release) sbom(binary, name, system string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	body, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	if listed == nil {
		modules, err := licences.Linked(".")
		if err != nil {
			return err
		}
		listed = map[string]string{}
		for _, m := range modules {
			words := make([]string, len(m.Licences))
			for i, l := range m.Licences {
				words[i] = expression.Replace(string(l))
			}
			listed[m.Path] = strings.Join(words, " AND ")
		}
	}
	sum := sha256.Sum256(body)
	file := r.archiveName(name, system)
	own := &spdx.Package{
		PackageName: name, PackageSPDXIdentifier: "Program", PackageVersion: r.version,
		PackageDownloadLocation: "git+https://" + ours + "@" + r.commit, PackageLicenseDeclared: "Apache-2.0",
		PackageLicenseConcluded: "Apache-2.0", PackageCopyrightText: "NOASSERTION", PrimaryPackagePurpose: "APPLICATION",
		PackageChecksums: []common.Checksum{{Algorithm: common.SHA256, Value: hex.EncodeToString(sum[:])}},
	}
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: file,
		// The namespace has to be unique; the checksum is.
		DocumentNamespace: "https://" + ours + "/spdx/" + file + "-" + hex.EncodeToString(sum[:16]),
		CreationInfo: &spdx.CreationInfo{
			Created: r.made.Format(time.RFC3339), Creators: []common.Creator{{CreatorType: "Tool", Creator: "littoral-release"}},
		},
		Packages: []*spdx.Package{own},
		Relationships: []*spdx.Relationship{
			{RefA: common.MakeDocElementID("", "DOCUMENT"), RefB: common.MakeDocElementID("", "Program"), Relationship: common.TypeRelationshipDescribe},
		},
	}
	add := func(path, version, h1, licence string) error {
		p := &spdx.Package{
			PackageName: path, PackageVersion: version, PackageSPDXIdentifier: common.ElementID(noID.ReplaceAllString("Module-"+path+"-"+version, "-")),
			PackageDownloadLocation: "NOASSERTION", PackageLicenseConcluded: licence, PackageLicenseDeclared: licence, PackageCopyrightText: "NOASSERTION",
			PackageExternalReferences: []*spdx.PackageExternalReference{
				{Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: "pkg:golang/" + path + "@" + version},
			},
		}
		if hash, ok := strings.CutPrefix(h1, "h1:"); ok { // go.sum's, which is over the module's files
			raw, err := base64.StdEncoding.DecodeString(hash)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			p.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: hex.EncodeToString(raw)}}
		}
		doc.Packages = append(doc.Packages, p)
		doc.Relationships = append(doc.Relationships, &spdx.Relationship{
			RefA: common.MakeDocElementID("", "Program"), RefB: common.MakeDocElementID("", string(p.PackageSPDXIdentifier)),
			Relationship: common.TypeRelationshipContains,
		})
		return nil
	}
	if err := add("stdlib", strings.TrimPrefix(info.GoVersion, "go"), "", "BSD-3-Clause"); err != nil {
		return err
	}
	for _, m := range info.Deps {
		path, used := m.Path, m
		if m.Replace != nil {
			used = m.Replace
		}
		licence := listed[path]
		if licence == "" {
			return fmt.Errorf("the licence of %s is not listed", path)
		}
		if err := add(path, used.Version, used.Sum, licence); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	if err := spdxjson.Write(doc, &b, spdxjson.Indent("  ")); err != nil {
		return err
	}
	return r.write(file+".spdx.json", b.Bytes())
}
