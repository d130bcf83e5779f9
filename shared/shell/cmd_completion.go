package shell

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCommand struct {
	Shell string `arg:"" optional:"" enum:"bash" default:"bash" help:"bash."`
}

// Run prints a script that completes commands and flags; source it, or put it into bash_completion.d.
func (c *completionCommand) Run(s *session) error {
	var cases strings.Builder
	completions(s.parser.Model.Node, "littoral", &cases)
	_, err := fmt.Fprintf(s.out, `_littoral() {
  local path=littoral word choices
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) path="$path $word" ;; esac
  done
  while :; do
    case "$path" in
%s    *) choices= ;;
    esac
    [ -n "$choices" ] && break
    case "$path" in *" "*) path="${path%% *}" ;; *) break ;; esac
  done
  COMPREPLY=($(compgen -W "$choices" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _littoral littoral
`, cases.String())
	return err
}

// completions writes one case for the command at path and for each below it: what may stand after it.
func completions(n *kong.Node, path string, b *strings.Builder) {
	var words []string
	for _, child := range n.Children {
		if !child.Hidden {
			words = append(words, child.Name)
			completions(child, path+" "+child.Name, b)
		}
	}
	for _, flag := range n.Flags {
		if !flag.Hidden {
			words = append(words, "--"+flag.Name)
		}
	}
	slices.Sort(words)
	fmt.Fprintf(b, "    %q) choices=%q ;;\n", path, strings.Join(words, " "))
}
