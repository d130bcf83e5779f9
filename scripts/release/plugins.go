package main

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// plugins writes what installs the command line as a plugin: krew's manifest for "kubectl littoral", and a formula for Homebrew,
// in the form of those of kn's plugins, for "kn littoral".
func (r *release) plugins(archives map[string]string) error {
	type selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	}
	type platform struct {
		Selector selector `json:"selector"`
		URI      string   `json:"uri"`
		SHA256   string   `json:"sha256"`
		Bin      string   `json:"bin"`
	}
	var platforms []platform
	var formula strings.Builder
	systems := slices.Collect(func(yield func(string) bool) {
		for _, system := range everywhere {
			if archives[system] != "" && !yield(system) {
				return
			}
		}
	})
	for _, system := range systems {
		os_, arch, _ := strings.Cut(system, "/")
		bin, ending := "littoral", ".tar.gz"
		if os_ == "windows" {
			bin, ending = "littoral.exe", ".zip"
		}
		uri := r.at + "/" + r.version + "/" + r.archiveName("littoral", system) + ending
		platforms = append(platforms, platform{selector{map[string]string{"os": os_, "arch": arch}}, uri, archives[system], bin})
		if os_ != "windows" {
			on := map[string]string{"darwin": "OS.mac?", "linux": "OS.linux?"}[os_] + " && Hardware::CPU." +
				map[string]string{"amd64": "intel?", "arm64": "arm?"}[arch]
			fmt.Fprintf(&formula, "  if %s\n    url %q\n    sha256 %q\n  end\n", on, uri, archives[system])
		}
	}
	const short = "Place applications on a continuum of clusters and devices"
	krew, err := yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin",
		"metadata": map[string]any{"name": "littoral"},
		"spec": map[string]any{
			"version": r.version, "homepage": "https://" + ours, "shortDescription": short, "platforms": platforms,
			"description": "Littoral places applications on a continuum of clusters and devices and keeps them there.\nLITTORAL_SERVER names the controller.\n",
		},
	})
	if err != nil {
		return err
	}
	if err := r.write("littoral.krew.yaml", krew); err != nil {
		return err
	}
	return r.write("kn-littoral.rb", []byte(fmt.Sprintf(`class KnLittoral < Formula
  desc %q
  homepage %q
  version %q
  license "Apache-2.0"

%s
  def install
    bin.install "littoral"
    bin.install "littoral-backup"
    bin.install_symlink bin/"littoral" => "kn-littoral"
  end

  test do
    system "#{bin}/kn-littoral", "version"
  end
end
`, short, "https://"+ours, strings.TrimPrefix(r.version, "v"), formula.String())))
}
