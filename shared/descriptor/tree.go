package descriptor

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/problem"
)

// load returns the root node of every document that is not empty, as plain trees: aliases and merge keys are resolved,
// comments dropped, styles normal. Nodes behind an alias are shared, so no node may be changed from here on. Duplicate
// keys and foreign tags are faults.
func load(doc []byte, faults *problem.Faults) ([]*yaml.Node, error) {
	text, err := guard(doc)
	if err != nil {
		return nil, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	flat := flattener{faults: faults, anchored: map[*yaml.Node]extent{}}
	var roots []*yaml.Node
	for number := 0; ; number++ {
		var n yaml.Node
		if err := decode(decoder, &n); errors.Is(err, io.EOF) {
			return roots, nil
		} else if err != nil {
			return nil, unreadable(err, text)
		}
		if number == maxDocuments {
			return nil, problem.New(problem.TooLarge, "the descriptor has more than %d YAML documents", maxDocuments)
		}
		if len(n.Content) == 0 {
			continue
		}
		root := n.Content[0]
		flat.path = flat.path[:0]
		if len(roots) > 0 {
			flat.path = append(flat.path, segment{key: documentPath(len(roots))})
		}
		if _, err := flat.visit(root, 1); err != nil {
			return nil, err
		}
		if root.Tag != tagNull || root.Value != "" {
			roots = append(roots, root)
		}
	}
}

func documentPath(i int) string { return fmt.Sprintf("documents[%d]", i) }

// decode turns a panic of the library, which it raises for states it holds impossible, into an error.
func decode(decoder *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("yaml: %v", v)
		}
	}()
	return decoder.Decode(n)
}

func unreadable(err error, doc []byte) *problem.Error {
	detail, line := strings.TrimPrefix(err.Error(), "yaml: "), 0
	if after, ok := strings.CutPrefix(detail, "line "); ok {
		if number, rest, ok := strings.Cut(after, ": "); ok {
			if n, err := strconv.Atoi(number); err == nil {
				detail, line = rest, n
			}
		}
	}
	// The library gives the first line no number.
	if first := max(line, 1); strings.HasSuffix(detail, "cannot start any token") && tabbed(doc, first) {
		detail, line = "a tab indents this line, for which YAML takes blanks only", first
	}
	if line > 0 {
		return malformed(line, "not readable as YAML: %s", detail)
	}
	return malformed(0, "the descriptor is not readable as YAML: %s", detail)
}

// tabbed reports whether the line is indented with a tab.
func tabbed(doc []byte, line int) bool {
	lines := bytes.SplitN(doc, []byte{'\n'}, line+1)
	if line < 1 || line > len(lines) {
		return false
	}
	text := lines[line-1]
	return bytes.ContainsRune(text[:len(text)-len(bytes.TrimLeft(text, " \t-"))], '\t')
}

const (
	tagNull  = "!!null"
	tagStr   = "!!str"
	tagInt   = "!!int"
	tagFloat = "!!float"
	tagBool  = "!!bool"
	tagMerge = "!!merge"
)

// knownTags are the tags with a meaning in JSON, plus two that stand for text here. Any other would reach an
// orchestrator's YAML reader, where a tag can name code.
var knownTags = map[string]bool{
	tagNull: true, tagStr: true, tagInt: true, tagFloat: true, tagBool: true, tagMerge: true,
	"!!map": true, "!!seq": true, "!!timestamp": true, "!!binary": true, "!": true, "": true,
}

// enoughFaults is how many faults of the tree get a path; an answer lists no more.
const enoughFaults = 100

// extent is the size of a node when it is written out.
type extent struct{ nodes, text, depth int }

func (e *extent) add(child extent) {
	e.nodes += child.nodes
	e.text += child.text
	e.depth = max(e.depth, child.depth+1)
}

// flattener walks a tree once, in document order, so that an anchor is always finished before a lawful alias to it.
type flattener struct {
	faults   *problem.Faults
	anchored map[*yaml.Node]extent
	path     []segment
	reported int
	total    extent // of all documents
}

type segment struct {
	key   string
	index int // when key is empty
}

func (f *flattener) visit(n *yaml.Node, depth int) (extent, error) {
	own := extent{nodes: 1, text: len(n.Value), depth: 1}
	if err := f.spend(own, n); err != nil {
		return own, err
	}
	if depth > maxDepth {
		return own, malformed(n.Line, "nested deeper than %d levels", maxDepth)
	}
	if !knownTags[n.Tag] {
		f.fault(n, "the tag %s is not supported", shorten(n.Tag))
	}
	if strings.IndexByte(n.Value, 0) >= 0 {
		f.fault(n, "contains a NUL character")
	}
	anchor := n.Anchor
	normalise(n)

	merges := false
	for i, child := range n.Content {
		at := segment{index: i}
		if n.Kind == yaml.MappingNode {
			at.key = n.Content[i&^1].Value
			if i%2 == 0 {
				merges = f.key(child) || merges
			}
		}
		f.path = append(f.path, at)
		cost, err := f.child(n, i, depth)
		f.path = f.path[:len(f.path)-1]
		if err != nil {
			return own, err
		}
		own.add(cost)
	}
	if n.Kind == yaml.MappingNode {
		f.unique(n)
		if merges {
			f.merge(n)
		}
	}
	if own.depth+depth-1 > maxDepth {
		return own, malformed(n.Line, "nested deeper than %d levels", maxDepth)
	}
	if anchor != "" {
		f.anchored[n] = own
	}
	return own, nil
}

// child visits child i of n; an alias is replaced by its target.
func (f *flattener) child(n *yaml.Node, i, depth int) (extent, error) {
	c := n.Content[i]
	if c.Kind != yaml.AliasNode {
		return f.visit(c, depth+1)
	}
	cost, done := f.anchored[c.Alias]
	if !done {
		return cost, malformed(c.Line, "the alias *%s stands inside the value it names", shorten(c.Value))
	}
	n.Content[i] = c.Alias
	return cost, f.spend(cost, c)
}

func (f *flattener) spend(cost extent, n *yaml.Node) error {
	f.total.nodes += cost.nodes
	f.total.text += cost.text
	if f.total.nodes > maxNodes {
		return tooManyNodes()
	}
	if f.total.text > maxText {
		return problem.New(problem.TooLarge, "the descriptor has more than %d bytes of text once the aliases "+
			"are written out (reached at line %d)", maxText, n.Line)
	}
	return nil
}

// key checks one mapping key and reports whether it is a merge key.
func (f *flattener) key(k *yaml.Node) bool {
	if k.Kind == yaml.AliasNode {
		k = k.Alias
	}
	if k.Kind != yaml.ScalarNode {
		f.fault(k, "a key must be plain text, not a list or an object")
	}
	return k.Tag == tagMerge
}

// unique reports every key that stands twice in an object.
func (f *flattener) unique(n *yaml.Node) {
	for i := 0; i < len(n.Content); i += 2 {
		if isSlip(n.Content[i]) {
			return // the reader reports the missing space, which causes the duplicates
		}
	}
	const few = 16 // most objects are smaller, and a map for each of them would cost more than all the rest
	var seen map[string]*yaml.Node
	if len(n.Content)/2 > few {
		seen = make(map[string]*yaml.Node, len(n.Content)/2)
	}
	for i := 0; i < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode {
			continue
		}
		first := seen[k.Value]
		for j := 0; seen == nil && first == nil && j < i; j += 2 {
			if other := n.Content[j]; other.Kind == yaml.ScalarNode && other.Value == k.Value {
				first = other
			}
		}
		switch {
		case first != nil:
			f.path = append(f.path, segment{key: k.Value})
			f.fault(k, "the key %q is here a second time; the first is on line %d", shorten(k.Value), first.Line)
			f.path = f.path[:len(f.path)-1]
		case seen != nil:
			seen[k.Value] = k
		}
	}
}

// merge resolves "<<": keys of the mapping itself win, then those of the earlier sources.
func (f *flattener) merge(n *yaml.Node) {
	var content, sources []*yaml.Node
	have := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case k.Tag != tagMerge:
			content = append(content, k, v)
			have[k.Value] = true
		case v.Kind == yaml.SequenceNode:
			sources = append(sources, v.Content...)
		default:
			sources = append(sources, v)
		}
	}
	for _, source := range sources {
		if source.Kind != yaml.MappingNode {
			f.fault(source, "only objects can be merged with <<")
			continue
		}
		for i := 0; i < len(source.Content); i += 2 {
			k := source.Content[i]
			if !have[k.Value] {
				content = append(content, k, source.Content[i+1])
				have[k.Value] = true
			}
		}
	}
	n.Content = content
}

// normalise drops what must not travel with a value and picks styles that the library writes back without loss.
func normalise(n *yaml.Node) {
	n.Anchor, n.HeadComment, n.LineComment, n.FootComment = "", "", "", ""
	n.Style &^= yaml.FlowStyle
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		n.Style &^= yaml.LiteralStyle | yaml.FoldedStyle
		if blockSafe(n.Value) {
			n.Style |= yaml.LiteralStyle
		} else {
			n.Style |= yaml.DoubleQuotedStyle
		}
	}
}

// blockSafe reports whether a text survives being written as a literal block. It does not if its indentation would be
// guessed from its first line, or if it has a line end other than \n.
func blockSafe(text string) bool {
	return text != "" && text[0] != ' ' && text[0] != '\n' && text[0] != '\t' &&
		!strings.ContainsAny(text, "\r\u0085\u2028\u2029\ufeff")
}

func (f *flattener) fault(n *yaml.Node, format string, args ...any) {
	if f.reported++; f.reported > enoughFaults {
		f.faults.Add("", 0, "") // only counted from here on, so no path is built
		return
	}
	f.faults.Add(pathText(f.path), n.Line, format, args...)
}

func pathText(path []segment) string {
	if len(path) == 0 {
		return document
	}
	var b strings.Builder
	for _, s := range path {
		switch {
		case s.key == "":
			fmt.Fprintf(&b, "[%d]", s.index)
		case b.Len() > 0:
			b.WriteString("." + shorten(s.key))
		default:
			b.WriteString(shorten(s.key))
		}
	}
	return b.String()
}

// shorten makes text of the document short enough for an answer.
func shorten(text string) string { return problem.Brief(text, 80) }

// render writes a node as a YAML document of its own.
func render(n *yaml.Node) (string, error) {
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(n); err != nil {
		return "", err
	}
	if err := encoder.Close(); err != nil {
		return "", err
	}
	return b.String(), nil
}

// plain returns a node in the types of encoding/json, with int64 for whole numbers. Numbers without a form in JSON stay
// text.
func plain(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = plain(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, c := range n.Content {
			list[i] = plain(c)
		}
		return list
	}
	switch n.Tag {
	case tagNull:
		return nil
	case tagBool:
		return strings.EqualFold(n.Value, "true")
	case tagInt:
		var i int64
		if n.Decode(&i) == nil {
			return i
		}
	case tagFloat:
		if f, ok := finite(n.Value); ok {
			return f
		}
	}
	return n.Value
}
