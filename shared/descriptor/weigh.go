package descriptor

import "bytes"

// weighJSON counts the nodes of a valid JSON document, never too few.
func weighJSON(doc []byte) int {
	n, quoted := 1, false
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			n += 2
		case c == ',' || c == ':':
			n++
		}
	}
	return n
}

// weighYAML estimates the nodes of a YAML document from its indicators, and is meant never to say too few.
//
// Indicators inside a quoted string on one line or inside a block scalar are not counted, so that a ConfigMap full of
// JSON is no offence. That discount needs certainty about where such text begins: it is given only while every line so
// far was of the plain "- key: value" sort. From the first other line on, until the next document, all is counted.
func weighYAML(doc []byte) int {
	var s scale
	// Lone carriage returns and the Unicode line ends break lines for YAML 1.1 but not for this scale.
	s.blind = bytes.Count(doc, []byte{'\r'}) != bytes.Count(doc, []byte("\r\n")) ||
		bytes.Contains(doc, []byte("\u0085")) || bytes.Contains(doc, []byte("\u2028")) ||
		bytes.Contains(doc, []byte("\u2029"))
	s.weight = 2
	for line := range bytes.SplitSeq(doc, []byte{'\n'}) {
		s.line(bytes.TrimSuffix(line, []byte{'\r'}))
		if s.weight > maxNodes {
			break
		}
	}
	return s.weight
}

type scale struct {
	weight int
	blind  bool // lines cannot be told apart: count everything

	wild    bool // a line beyond the simple sort was seen in this document
	block   bool // inside a block scalar
	parent  int  // column of the key or dash it belongs to
	content int  // its indentation, 0 until its first line
}

func (s *scale) line(b []byte) {
	if s.blind {
		s.weight += indicators(b)
		return
	}
	rest := bytes.TrimLeft(b, " ")
	indent := len(b) - len(rest)
	if s.block {
		if len(rest) == 0 {
			return
		}
		if s.content == 0 && indent > s.parent {
			s.content = indent
		}
		if s.content > 0 && indent >= s.content {
			return
		}
		s.block = false
	}
	switch {
	case len(rest) == 0:
	case bytes.HasPrefix(b, []byte("---")):
		s.weight += 3 + indicators(b[3:])
		s.wild = len(bytes.TrimRight(b[3:], " ")) > 0
	case s.wild || !s.simple(rest, indent):
		s.wild = true
		s.weight += indicators(b)
	}
}

// simple weighs a line of the form "- - key: value", each part optional, and reports whether it was one.
func (s *scale) simple(rest []byte, col int) bool {
	if bytes.IndexByte(rest, '\t') >= 0 {
		return false
	}
	weight, parent := 0, col
	step := func(n int) {
		trimmed := bytes.TrimLeft(rest[n:], " ")
		col += len(rest) - len(trimmed)
		rest = trimmed
	}
	for len(rest) > 0 && rest[0] == '-' && (len(rest) == 1 || rest[1] == ' ') {
		weight++
		parent = col
		step(1)
	}
	if n := plainKey(rest); n > 0 {
		weight += 2
		parent = col
		step(n + 1)
	}
	if len(rest) == 0 {
		s.weight += weight
		return true
	}
	switch rest[0] {
	case '|', '>':
		header := bytes.TrimRight(bytes.TrimLeft(rest[1:], "+-"), " ")
		if len(header) > 0 {
			return false
		}
		s.block, s.parent, s.content = true, parent, 0
	case '"', '\'':
		n := quotedEnd(rest)
		if n < 0 || len(bytes.TrimRight(rest[n:], " ")) > 0 {
			return false
		}
	case '[', '{':
		if !balanced(rest) {
			return false
		}
		weight += indicators(rest)
	case '&', '*', '!', '?', '%', '@', '`', ',', ']', '}':
		return false
	default: // plain text or a comment
		weight += indicators(rest)
	}
	s.weight += weight
	return true
}

// plainKey returns the length of the unquoted key that rest starts with, 0 when it does not.
func plainKey(rest []byte) int {
	for i, c := range rest {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '.', c == '/':
		case c == '-' && i > 0:
		case c == ':' && i > 0 && (i+1 == len(rest) || rest[i+1] == ' '):
			return i
		default:
			return 0
		}
	}
	return 0
}

// quotedEnd returns where the quoted string at the start of rest ends, -1 when it goes beyond the line.
func quotedEnd(rest []byte) int {
	quote := rest[0]
	for i := 1; i < len(rest); i++ {
		switch {
		case quote == '"' && rest[i] == '\\':
			i++
		case rest[i] != quote:
		case quote == '\'' && i+1 < len(rest) && rest[i+1] == quote:
			i++
		default:
			return i + 1
		}
	}
	return -1
}

// balanced reports whether rest is one flow collection, closed at the end of the line, without anything that could make
// a bracket part of a text.
func balanced(rest []byte) bool {
	depth := 0
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
			if depth == 0 {
				return len(bytes.TrimRight(rest[i+1:], " ")) == 0
			}
		case '"', '\'':
			if bytes.IndexByte([]byte("[{, :"), rest[i-1]) < 0 {
				return false
			}
			n := quotedEnd(rest[i:])
			if n < 0 {
				return false
			}
			i += n - 1
		case '#', '&', '*', '!', '?', '\\':
			return false
		}
	}
	return false
}

// indicators weighs the characters that can begin a node, wherever they stand.
func indicators(b []byte) int {
	n := 0
	for i, c := range b {
		switch c {
		case ':', '?', ',', '[':
			n += 2
		case '{':
			n += 3
		case '-':
			if i+1 == len(b) || b[i+1] == ' ' || b[i+1] == '\t' || b[i+1] == '\r' || b[i+1] >= 0x80 {
				n++
			}
		case '&':
			n += 2 // an anchor is an entry in two maps
		case '#':
			if i == 0 || b[i-1] == ' ' || b[i-1] == '\t' || b[i-1] == '\r' || b[i-1] >= 0x80 {
				n += 3 // comments are kept beside the nodes and cost more than one
			}
		}
	}
	return n
}
