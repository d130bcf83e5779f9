package render

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
)

// syntaxError says why a text is no PromQL, whatever is put into its placeholders, and where.
type syntaxError struct {
	text   string // as written
	offset int    // in bytes
	detail string
}

func (e *syntaxError) Error() string { return e.detail }

// field is the fault for the text at the path. Its line is that of the text, from 1, if there are several.
func (e *syntaxError) field(path string) problem.Field {
	at := min(max(e.offset, 0), len(e.text))
	start := strings.LastIndexByte(e.text[:at], '\n') + 1
	line, _, _ := strings.Cut(e.text[start:], "\n")
	f := problem.Field{
		Path: path, Column: 1 + utf8.RuneCountInString(e.text[start:at]), Excerpt: excerpt(line, at-start), Detail: e.detail,
	}
	if strings.Contains(e.text, "\n") {
		f.Line = 1 + strings.Count(e.text[:start], "\n")
	}
	return f
}

// around is how much of a long line an excerpt has on each side of its caret, in characters.
const around = 50

// excerpt is a line with a caret below the character at the offset.
func excerpt(line string, at int) string {
	at = min(at, len(line))
	before, after := []rune(line[:at]), []rune(line[at:])
	if n := len(before) - around; n > 0 {
		before = append([]rune("..."), before[n:]...)
	}
	if len(after) > around {
		after = append(after[:around:around], []rune("...")...)
	}
	blank := make([]rune, len(before)) // tabs stay, so that the caret stands right
	for i, c := range before {
		blank[i] = ' '
		if c == '\t' {
			blank[i] = c
		}
	}
	return string(before) + string(after) + "\n" + string(blank) + "^"
}

// Syntax returns what in a query of a policy cannot be parsed, whatever its variables; nothing for other specs. The line
// of each field is that of the expression, from 1, if that has several.
func Syntax(spec *registry.Spec) []problem.Field {
	if spec.Type != registry.TelemetrySpec {
		return nil
	}
	var fields []problem.Field
	check := func(path, before, text string) {
		var e *syntaxError
		if _, err := parseMarked(before, text); errors.As(err, &e) {
			fields = append(fields, e.field(path))
		}
	}
	check("spec.expr", "", spec.Expr)
	if strings.TrimSpace(spec.ViolatedIf) != "" {
		check("spec.violatedIf", "left", spec.ViolatedIf)
	}
	return fields
}

// marked is a parsed text with sentinels in place of its placeholders.
type marked struct {
	tree  parser.Expr
	nonce string
	holes []hole
}

// parseMarked parses a text with placeholders. Of a condition, before is the word that stands for its left side.
func parseMarked(before, text string) (marked, error) {
	nonce := nonce(text)
	s := scanner{text: text, nonce: nonce}
	if err := s.run(); err != nil {
		return marked{}, &syntaxError{text, s.at, err.Error()}
	}
	if before != "" {
		before = nonce + before + " "
	}
	tree, err := promql.ParseExpr(before + s.out.String())
	if err != nil {
		offset := len(s.out.String())
		var all parser.ParseErrors
		if errors.As(err, &all) && len(all) > 0 {
			offset, err = int(all[0].PositionRange.Start)-len(before), all[0].Err
			if strings.HasPrefix(err.Error(), "unexpected right ") { // its position is that behind it
				offset--
			}
		}
		return marked{}, &syntaxError{text, s.source(offset), readable(err, nonce, s.holes)}
	}
	return marked{tree, nonce, s.holes}, nil
}
