package descriptor

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/littoral-project/littoral/shared/problem"
)

// MaxBytes is the size of the largest document that is read.
const MaxBytes = 1 << 20

// Other limits of a document. They keep the cost of a hostile document near that of an honest one.
const (
	maxNodes      = 100_000 // keys, values, lists and objects, with every alias written out
	maxText       = 2 << 20 // bytes of text, with every alias written out
	maxDepth      = 64
	maxDocuments  = 256
	maxDirectives = 16 // the YAML library compares each %TAG with all before it
	maxComponents = 1000
	maxJobs       = maxComponents // one for each component, or for each value of its node label
	maxPolicies   = 2000          // of all components and the top level
	maxEntries    = 4096          // of any other list
	maxKeys       = 1000          // of an object the reader looks into
	maxRendered   = 4 << 20       // bytes of manifest text over all components, and over all jobs
	maxCompose    = 20_000        // keys, values, lists and objects of compose files, whose library takes its time
	maxWarnings   = 100
)

// document is the path of a fault that belongs to no field.
const document = "document"

// guard refuses what must not reach the YAML library, which builds the whole tree before it returns: a mebibyte of "a:
// #" takes a quarter of a gigabyte. It returns the text to parse.
func guard(doc []byte) ([]byte, error) {
	if len(doc) > MaxBytes {
		return nil, problem.New(problem.TooLarge, "the descriptor has %d bytes; %d are allowed", len(doc), MaxBytes)
	}
	if bytes.HasPrefix(doc, []byte("\xff\xfe")) || bytes.HasPrefix(doc, []byte("\xfe\xff")) {
		return nil, malformed(1, "the descriptor is UTF-16 text, as some editors and shells of Windows write it; save it as UTF-8")
	}
	if i := bytes.IndexByte(doc, 0); i >= 0 {
		return nil, malformed(lineAt(doc, i), "the descriptor contains a NUL byte")
	}
	if i := invalidUTF8(doc); i >= 0 {
		return nil, malformed(lineAt(doc, i), "the descriptor is not UTF-8 text")
	}
	var weight int
	if trimmed := bytes.TrimLeft(doc, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed) {
		weight = weighJSON(trimmed)
		doc = joinSurrogates(doc)
	} else {
		if directives(doc) > maxDirectives {
			return nil, malformed(0, "the descriptor has more than %d YAML directives", maxDirectives)
		}
		weight = weighYAML(doc)
	}
	if weight > maxNodes {
		return nil, tooManyNodes()
	}
	return doc, nil
}

func malformed(line int, format string, args ...any) *problem.Error {
	e := problem.New(problem.Malformed, format, args...)
	if line > 0 {
		e.Fields = []problem.Field{{Path: document, Line: line, Detail: e.Detail}}
		e.Detail = "the descriptor cannot be read"
	}
	return e
}

func tooManyNodes() *problem.Error {
	return problem.New(problem.TooLarge,
		"the descriptor has too many values: %d are allowed, those behind aliases counted each time", maxNodes)
}

func lineAt(doc []byte, offset int) int { return 1 + bytes.Count(doc[:offset], []byte{'\n'}) }

func invalidUTF8(doc []byte) int {
	if utf8.Valid(doc) {
		return -1
	}
	for i := 0; i < len(doc); {
		r, size := utf8.DecodeRune(doc[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
	return -1
}

func directives(doc []byte) int {
	n := bytes.Count(doc, []byte("\n%"))
	if bytes.HasPrefix(doc, []byte("%")) {
		n++
	}
	return n
}

// joinSurrogates replaces pairs of \u escapes, which JSON uses beyond the basic plane, by the character itself, since
// YAML has no such pairs. doc is valid JSON, so a backslash is always inside a string.
func joinSurrogates(doc []byte) []byte {
	if !bytes.Contains(doc, []byte(`\ud`)) && !bytes.Contains(doc, []byte(`\uD`)) {
		return doc
	}
	out := make([]byte, 0, len(doc))
	for i := 0; i < len(doc); {
		if doc[i] != '\\' {
			out = append(out, doc[i])
			i++
			continue
		}
		if doc[i+1] != 'u' {
			out = append(out, doc[i], doc[i+1])
			i += 2
			continue
		}
		var s string
		n := 6
		if high(doc[i:]) && i+12 <= len(doc) && bytes.HasPrefix(doc[i+6:], []byte(`\u`)) && low(doc[i+6:]) {
			n = 12
		} else if !high(doc[i:]) && !low(doc[i:]) {
			out = append(out, doc[i:i+6]...)
			i += 6
			continue
		}
		quoted := append(append([]byte{'"'}, doc[i:i+n]...), '"')
		_ = json.Unmarshal(quoted, &s) // a half alone becomes U+FFFD
		out = append(out, s...)
		i += n
	}
	return out
}

func high(escape []byte) bool {
	return (escape[2] == 'd' || escape[2] == 'D') && bytes.IndexByte([]byte("89abAB"), escape[3]) >= 0
}

func low(escape []byte) bool {
	return (escape[2] == 'd' || escape[2] == 'D') && bytes.IndexByte([]byte("cdefCDEF"), escape[3]) >= 0
}
