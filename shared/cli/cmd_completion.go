package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/littoral-project/littoral/shared/api"
)

type completionCommand struct {
	Shell string `arg:"" optional:"" enum:"bash,zsh,fish" default:"bash" help:"bash, zsh or fish."`
}

// Help is the long help of completion.
func (completionCommand) Help() string {
	return `Completes commands, flags, their values, and the names of what the server has.

bash:  source <(littoral completion bash)
zsh:   littoral completion zsh > "${fpath[1]}/_littoral"
fish:  littoral completion fish > ~/.config/fish/completions/littoral.fish`
}

// Run prints a script that asks this program what may come next.
func (c *completionCommand) Run(s *session) error {
	_, err := io.WriteString(s.out, completionScripts[c.Shell])
	return err
}

// completeWord is the word by which the scripts ask; what follows are the words that were typed, the last of which is to be
// completed. Each line of the answer is a word, a tab and what it means; without an answer the shell completes files.
const completeWord = "__complete"

var completionScripts = map[string]string{
	"bash": `_littoral() {
  local IFS=$'\n'
  COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" ` + completeWord + ` "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1)" -- "${COMP_WORDS[COMP_CWORD]#=}"))
}
complete -o default -F _littoral littoral
`,
	"zsh": `#compdef littoral
_littoral() {
  local line
  local -a choices
  for line in "${(@f)$("${words[1]}" ` + completeWord + ` "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [ -n "$line" ] && choices+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( $#choices )); then _describe -V littoral choices; else _files; fi
}
if [ "$funcstack[1]" = _littoral ]; then _littoral "$@"; else compdef _littoral littoral; fi
`,
	"fish": `function __littoral_complete
  set -l typed (commandline -opc) (commandline -ct)
  $typed[1] ` + completeWord + ` $typed[2..-1] 2>/dev/null
end
complete -c littoral -a '(__littoral_complete)'
`,
}

// candidate is a word that may come next.
type candidate struct{ word, meaning string }

// patience is how long a completion waits for the server.
const patience = 2 * time.Second

// complete prints what the last of the words may become.
func (sh *Shell) complete(ctx context.Context, model *kong.Application, words []string) int {
	if len(words) == 0 {
		words = []string{""}
	}
	at := walk(model.Node, words[:len(words)-1])
	last := strings.TrimPrefix(words[len(words)-1], "=") // bash takes "--flag=value" apart at the sign
	found := at.literal(last)
	if kind := at.kind(last); kind != "" {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if s, err := sh.session(ctx, at.given["server"], at.given["token-file"], at.given["context"]); err == nil {
			s.ctx = ctx
			found = append(found, s.names(kind, at)...)
		}
	}
	prefix := ""
	if flag, value, whole := strings.Cut(last, "="); whole && strings.HasPrefix(flag, "--") {
		prefix, last = flag+"=", value
	}
	for _, c := range found {
		if strings.HasPrefix(c.word, last) {
			fmt.Fprintf(sh.Stdout, "%s\t%s\n", printable(prefix+c.word), printable(c.meaning))
		}
	}
	return exitOK
}

// typed is where a half typed command line has come to.
type typed struct {
	node    *kong.Node
	waiting *kong.Flag        // the flag whose value comes next
	args    []string          // positional arguments so far
	given   map[string]string // flags with their values
}

// walk follows words through the commands.
func walk(root *kong.Node, words []string) *typed {
	at := &typed{node: root, given: map[string]string{}}
	for _, word := range words {
		switch {
		case word == "=":
		case at.waiting != nil:
			at.given[at.waiting.Name], at.waiting = word, nil
		case strings.HasPrefix(word, "-"):
			name, value, whole := strings.Cut(word, "=")
			flag := at.flag(name)
			switch {
			case flag == nil:
			case whole:
				at.given[flag.Name] = value
			case !flag.IsBool() && !flag.IsCounter():
				at.waiting = flag
			}
		default:
			at.step(word)
		}
	}
	return at
}

// step follows a word that is no flag: a command, else an argument of the one that is meant without a name.
func (at *typed) step(word string) {
	if child := at.child(word); child != nil && len(at.args) == 0 {
		at.node = child
		return
	}
	if at.node.DefaultCmd != nil {
		at.node = at.node.DefaultCmd
	}
	at.args = append(at.args, word)
}

func (at *typed) flag(name string) *kong.Flag {
	for _, flag := range slices.Concat(at.node.AllFlags(false)...) {
		if name == "--"+flag.Name || flag.Short != 0 && name == "-"+string(flag.Short) {
			return flag
		}
	}
	return nil
}

func (at *typed) child(word string) *kong.Node {
	for _, child := range at.node.Children {
		if child.Name == word || slices.Contains(child.Aliases, word) {
			return child
		}
	}
	return nil
}

// value is the flag or argument whose value is typed now; nil = none is.
func (at *typed) value(last string) *kong.Value {
	if at.waiting != nil {
		return at.waiting.Value
	}
	if name, _, whole := strings.Cut(last, "="); whole && strings.HasPrefix(name, "--") {
		if flag := at.flag(name); flag != nil {
			return flag.Value
		}
		return nil
	}
	positions, node := at.node.Positional, at.node
	if len(positions) == 0 && node.DefaultCmd != nil {
		positions = node.DefaultCmd.Positional
	}
	switch n := len(at.args); {
	case strings.HasPrefix(last, "-"):
		return nil
	case n < len(positions):
		return positions[n]
	case len(positions) > 0 && positions[len(positions)-1].IsCumulative():
		return positions[len(positions)-1]
	}
	return nil
}

// literal are the commands, flags and values that the command line itself knows.
func (at *typed) literal(last string) []candidate {
	var found []candidate
	value := at.value(last)
	if value != nil && value.Enum != "" {
		for _, word := range value.EnumSlice() {
			if word != "" {
				found = append(found, candidate{word, ""})
			}
		}
	}
	switch {
	case at.waiting != nil || strings.HasPrefix(last, "--") && strings.Contains(last, "="):
	case strings.HasPrefix(last, "-"):
		for _, flag := range slices.Concat(at.node.AllFlags(true)...) {
			found = append(found, candidate{"--" + flag.Name, flag.Help})
		}
	case len(at.args) == 0:
		for _, child := range at.node.Children {
			if !child.Hidden {
				found = append(found, candidate{child.Name, child.Help})
			}
		}
	}
	slices.SortFunc(found, func(a, b candidate) int { return strings.Compare(a.word, b.word) })
	return found
}

// kind is what the server is asked for: the value's tag "complete".
func (at *typed) kind(last string) string {
	if value := at.value(last); value != nil {
		return value.Tag.Get("complete")
	}
	return ""
}

// names are those of the things of a kind that the server, or the file of contexts, has.
func (s *session) names(kind string, at *typed) []candidate {
	switch kind {
	case "context":
		all, err := s.contexts()
		if err != nil {
			return nil
		}
		return candidates(all.List, func(c contextItem) candidate { return candidate{c.Name, c.Server} })
	case "controller":
		list, _ := s.client.Controllers(s.ctx) // without an answer there is nothing to offer
		return candidates(list, func(c api.Controller) candidate { return candidate{c.Name, c.Address} })
	case "node", "cluster":
		return s.places(kind)
	case "policy":
		list, _ := s.client.Policies(s.ctx, "", "")
		return candidates(list, func(p api.Policy) candidate { return candidate{p.Name, watches(&p)} })
	}
	list, _ := s.client.Applications(s.ctx, api.Filter{Light: true})
	switch kind {
	case "app":
		return candidates(list, func(a api.Application) candidate { return candidate{a.Name, a.Status} })
	case "component":
		return components(list, at)
	}
	return nil
}

// components are those of the application that was named before; without one, APPLICATION/COMPONENT.
func components(list []api.Application, at *typed) []candidate {
	var found []candidate
	for i := range list {
		for _, j := range list[i].Components() {
			switch {
			case len(at.args) == 0:
				found = append(found, candidate{list[i].Name + "/" + j.Component(), j.State})
			case list[i].Name == at.args[0] || strings.HasPrefix(list[i].ID, at.args[0]):
				found = append(found, candidate{j.Component(), j.State})
			}
		}
	}
	return found
}

// places are names of nodes or clusters.
func (s *session) places(kind string) []candidate {
	taxonomy, err := s.client.Taxonomy(s.ctx)
	if err != nil {
		return nil
	}
	var found []candidate
	for _, p := range taxonomy.Places() {
		c := candidate{p.Node, p.Cluster}
		if kind == "cluster" {
			c = candidate{p.Cluster, strings.ToLower(p.In.Type)}
		}
		if !slices.Contains(found, c) {
			found = append(found, c)
		}
	}
	return found
}

func candidates[T any](list []T, as func(T) candidate) []candidate {
	found := make([]candidate, len(list))
	for i, v := range list {
		found[i] = as(v)
	}
	return found
}
