package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCommand struct {
	Shell string `arg:"" optional:"" enum:"bash" default:"bash" help:"bash."`
}

// Run prints a script for bash that completes commands, flags (after a dash) and otherwise files. Source it, or put it
// into bash_completion.d.
func (c *completionCommand) Run(s *session) error {
	var cases strings.Builder
	completions(s.parser.Model.Node, "littoral", &cases)
	_, err := fmt.Fprintf(s.out, `_littoral() {
  local path=littoral word choices flags
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) path="$path $word" ;; esac
  done
  while :; do
    case "$path" in
%s    *) choices= flags= ;;
    esac
    [ -n "$flags" ] && break
    case "$path" in *" "*) path="${path%% *}" ;; *) break ;; esac
  done
  case "${COMP_WORDS[COMP_CWORD]}" in -*) choices=$flags ;; esac
  COMPREPLY=($(compgen -W "$choices" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _littoral littoral
`, cases.String())
	return err
}

// completions writes a case with the possible next words for the command at path and for each command below it.
func completions(n *kong.Node, path string, b *strings.Builder) {
	var words, flags []string
	for _, child := range n.Children {
		if !child.Hidden {
			words = append(words, child.Name)
			completions(child, path+" "+child.Name, b)
		}
	}
	for _, flag := range slices.Concat(n.AllFlags(true)...) {
		flags = append(flags, "--"+flag.Name)
	}
	slices.Sort(words)
	slices.Sort(flags)
	fmt.Fprintf(b, "    %q) choices=%q flags=%q ;;\n", path, strings.Join(words, " "), strings.Join(flags, " "))
}
