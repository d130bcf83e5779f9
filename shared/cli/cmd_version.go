package cli

import (
	"cmp"
	"fmt"
	"runtime/debug"
)

type versionCommand struct {
	Output format `short:"o" enum:"table,json,yaml" default:"table" help:"How to show it: table, json or yaml."`
}

// release and commit are set by the linker for programs of a release.
var release, commit string

// version is the answer of "version -o json".
type version struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Changed bool   `json:"changed,omitempty"` // built from a tree with changes
	Go      string `json:"go"`
}

// Run prints what the build recorded.
func (c *versionCommand) Run(s *session) error {
	v := thisVersion()
	if c.Output.structured() {
		return s.print(c.Output, v)
	}
	text := "littoral " + v.Version
	if v.Commit != "" {
		text += " (" + v.Commit[:min(len(v.Commit), 12)]
		if v.Changed {
			text += ", with changes"
		}
		text += ")"
	}
	_, err := fmt.Fprintf(s.out, "%s %s\n", text, v.Go)
	return err
}

// thisVersion is what the build recorded.
func thisVersion() version {
	v := version{Version: "unknown", Commit: commit}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version, v.Go = info.Main.Version, info.GoVersion
		for _, setting := range info.Settings {
			switch setting.Key {
			case "vcs.revision":
				v.Commit = setting.Value
			case "vcs.modified":
				v.Changed = setting.Value == "true"
			}
		}
	}
	v.Version = cmp.Or(release, v.Version)
	return v
}
