package descriptor

import (
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/compose/reading"
	"github.com/littoral-project/littoral/shared/problem"
)

// reader turns the trees of one descriptor into an Application and collects all faults on the way.
type reader struct {
	app    appmodel.Application
	faults problem.Faults
	header bool // ParseHeader: faults in manifests and names are warnings
	stored bool // it was accepted before

	compose reading.Reader // nil: nobody reads compose files

	source      source
	index       manifestIndex
	labelled    map[int]spot // by component, the values of its node label
	types       []spot       // by component, its type
	policyCount int
	moreWarned  int
}

func (r *reader) fault(path string, n *yaml.Node, format string, args ...any) {
	r.faults.Add(path, n.Line, format, args...)
}

// warn adds a warning with its place.
func (r *reader) warn(path string, n *yaml.Node, format string, args ...any) {
	if len(r.app.Warnings) >= maxWarnings {
		r.moreWarned++
		return
	}
	f := problem.Field{Path: path, Detail: fmt.Sprintf(format, args...)}
	if n != nil {
		f.Line = n.Line
	}
	r.app.Warnings = append(r.app.Warnings, f)
}

// complain adds a fault for a submission and a warning for a header.
func (r *reader) complain(path string, n *yaml.Node, format string, args ...any) {
	if r.header {
		r.warn(path, n, format, args...)
		return
	}
	r.fault(path, n, format, args...)
}

// fields is an object, its keys in order.
type fields struct {
	node *yaml.Node
	path string
	used map[string]bool
}

// object returns n as fields; a fault and false when it is none.
func (r *reader) object(n *yaml.Node, path string) (*fields, bool) {
	if n.Kind != yaml.MappingNode {
		r.fault(path, n, "must be an object, not %s", kindOf(n))
		return nil, false
	}
	if len(n.Content)/2 > maxKeys {
		r.fault(path, n, "has %d keys; %d are allowed", len(n.Content)/2, maxKeys)
		return nil, false
	}
	return &fields{node: n, path: path, used: map[string]bool{}}, true
}

// get returns the first of the names that is present and not null, and its path.
func (f *fields) get(names ...string) (*yaml.Node, string) {
	var found *yaml.Node
	var path string
	for _, name := range names {
		f.used[name] = true
		for i := 0; i+1 < len(f.node.Content) && found == nil; i += 2 {
			if f.node.Content[i].Value == name && !isNull(f.node.Content[i+1]) {
				found, path = f.node.Content[i+1], join(f.path, name)
			}
		}
	}
	return found, path
}

// has reports whether a key is there, null or not.
func (f *fields) has(name string) bool {
	for i := 0; i < len(f.node.Content); i += 2 {
		if f.node.Content[i].Value == name {
			f.used[name] = true
			return true
		}
	}
	return false
}

// rest warns of keys that nobody has read.
func (r *reader) rest(f *fields) {
	for i := 0; i < len(f.node.Content); i += 2 {
		k := f.node.Content[i]
		if !f.used[k.Value] {
			r.warn(join(f.path, shorten(k.Value)), k, "unknown key, ignored")
		}
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func at(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == tagNull }

func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "an object"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "empty"
	}
	return fmt.Sprintf("the text %q", shorten(n.Value))
}

// isSlip recognizes "-name: x", a list entry without the space behind its dash, which YAML reads as a key.
func isSlip(k *yaml.Node) bool {
	return k.Kind == yaml.ScalarNode && k.Tag == tagStr && k.Style == 0 && len(k.Value) > 1 && k.Value[0] == '-'
}

// slips reports every such missing space in an object that should have been a list, and whether there was one.
func (r *reader) slips(n *yaml.Node, path string, report func(string, *yaml.Node, string, ...any)) bool {
	found := false
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if !isSlip(k) {
			continue
		}
		found = true
		meant := "- " + k.Value[1:] + ":"
		if v := n.Content[i+1]; v.Kind == yaml.ScalarNode {
			meant += " " + v.Value
		}
		report(path, k, "%q is a key here, not an entry of a list: a blank is missing behind the dash, write %q",
			shorten(k.Value), shorten(meant))
	}
	return found
}

// list returns the entries of n; a fault when it is no list.
func (r *reader) list(n *yaml.Node, path string) []*yaml.Node {
	switch {
	case n.Kind == yaml.SequenceNode && len(n.Content) > maxEntries:
		r.fault(path, n, "has %d entries; %d are allowed", len(n.Content), maxEntries)
	case n.Kind == yaml.SequenceNode:
		return n.Content
	case !r.slips(n, path, r.fault):
		r.fault(path, n, "must be a list, not %s", kindOf(n))
	}
	return nil
}

// text returns a scalar as written; a fault and "" for anything else.
func (r *reader) text(n *yaml.Node, path string) string {
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode || isNull(n) {
		r.fault(path, n, "must be text, not %s", kindOf(n))
		return ""
	}
	return n.Value
}

// texts returns a scalar or a list of scalars as a list without repetitions.
func (r *reader) texts(n *yaml.Node, path string) []string {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		if t := strings.TrimSpace(r.text(n, path)); t != "" {
			return []string{t}
		}
		return nil
	}
	var out []string
	seen := map[string]bool{}
	for i, c := range r.list(n, path) {
		t := strings.TrimSpace(r.text(c, at(path, i)))
		if t != "" && !seen[t] {
			out = append(out, t)
			seen[t] = true
		}
	}
	return out
}

// number returns a number of at least low and at most high; a fault and false otherwise.
func (r *reader) number(n *yaml.Node, path string, low, high float64) (float64, bool) {
	text := r.text(n, path)
	if text == "" {
		return 0, false
	}
	value, ok := finite(text)
	switch {
	case !ok && strings.Contains(text, ":"):
		r.fault(path, n, "%q is not a number; is a blank missing behind a colon?", shorten(text))
	case !ok:
		r.fault(path, n, "%q is not a number", shorten(text))
	case value < low || value > high:
		r.fault(path, n, "must be between %g and %g, not %s", low, high, shorten(text))
		ok = false
	}
	return value, ok
}

// truth returns a boolean; a fault and false for anything else.
func (r *reader) truth(n *yaml.Node, path string) bool {
	if n.Kind != yaml.ScalarNode || n.Tag != tagBool {
		r.fault(path, n, "must be true or false")
		return false
	}
	return strings.EqualFold(n.Value, "true")
}

// duration returns a positive duration; a fault and zero otherwise.
func (r *reader) duration(n *yaml.Node, path string) time.Duration {
	text := r.text(n, path)
	if text == "" {
		return 0
	}
	parsed, err := parseDuration(text)
	switch {
	case err != nil:
		r.fault(path, n, "%v", err)
	case parsed <= 0:
		r.fault(path, n, "must be longer than zero")
	}
	return parsed
}

// The bounds of RFC 1123 labels; an application leaves room for "-" and eight characters of its id in a namespace.
const (
	maxLabel           = 63
	maxApplicationName = maxLabel - 9
)

// label checks a name that becomes part of object names and metric labels.
func (r *reader) label(n *yaml.Node, path string, longest int) string {
	name := r.text(n, path)
	switch {
	case name == "":
	case len(name) > longest:
		r.complain(path, n, "%q has %d characters; %d are allowed", shorten(name), len(name), longest)
	case !isLabel(name):
		hint := ""
		if better := asLabel(name, longest); better != "" {
			hint = fmt.Sprintf(": write %q", better)
		}
		r.complain(path, n, "%q must be lower-case letters, digits and hyphens, with a letter or digit at both ends%s",
			shorten(name), hint)
	}
	return name
}

// asLabel returns the label that is nearest to the name; "" if nothing of it is left.
func asLabel(name string, longest int) string {
	var b strings.Builder
	for _, c := range strings.ToLower(name) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() == longest {
			break
		}
	}
	return strings.Trim(b.String(), "-")
}

func isLabel(name string) bool {
	if name == "" || len(name) > maxLabel || name[0] == '-' || name[len(name)-1] == '-' {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
