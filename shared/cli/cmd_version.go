package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCommand struct {
	outputFlag
}

// release and commit are set by the linker for programs of a release.
var release, commit string

// version is the answer of "version -o json".
type version struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Changed  bool   `json:"changed,omitempty"` // built from a tree with changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Help is the long help of version.
func (versionCommand) Help() string {
	return "With -o name it prints the version alone.\n\nExample: littoral version"
}

// Run prints what the build recorded.
func (c *versionCommand) Run(s *session) error {
	v := thisVersion()
	if done, err := s.said(v, v.Version); done {
		return err
	}
	text, build := "littoral "+v.Version, v.Commit
	if !s.wide() {
		build = build[:min(len(build), shortCommit)]
	}
	if v.Changed {
		build += ", with changes"
	}
	if build != "" {
		text += " (" + build + ")"
	}
	if text += " " + v.Go; s.wide() {
		text += " " + v.Platform
	}
	_, err := fmt.Fprintln(s.out, text)
	return err
}

const shortCommit = 12 // digits that are shown

// thisVersion is what the build recorded.
func thisVersion() version {
	v := version{Version: "unknown", Commit: commit, Platform: runtime.GOOS + "/" + runtime.GOARCH}
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
