package cypher

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/littoral-project/littoral/shared/problem"
)

// query is a parsed query.
type query struct {
	matches []match
	returns returns
}

// match is one MATCH.
type match struct {
	patterns []pattern
	where    expr // nil = none
}

// pattern is a chain: nodes, and between each two of them a step.
type pattern struct {
	at    token
	path  string // its variable, "" = none
	nodes []node
	steps []step
}

// node is one of a pattern.
type node struct {
	at       token
	variable string
	labels   [][]string // of each group one must be its type
	props    []property
}

// step is a relation of a pattern, or a row of them.
type step struct {
	at       token
	variable string
	types    []string
	props    []property
	to, from bool // it leads to the node on its right, on its left; both or neither: either way
	many     bool
	min, max int
}

type property struct {
	key   string
	value expr
}

// returns is a RETURN.
type returns struct {
	distinct bool
	items    []item
	order    []order
	skip     expr
	limit    expr
}

type item struct {
	at    token
	value expr
	name  string
}

type order struct {
	at         token
	value      expr
	descending bool
}

// The expressions.
type (
	expr interface{ place() token }

	literal struct {
		token
		json string
	}
	param    struct{ token }
	variable struct{ token }
	access   struct {
		token
		of  expr
		key string
	}
	element struct {
		token
		of, at expr
	}
	call struct {
		token
		name     string // in lower case
		distinct bool
		star     bool
		args     []expr
	}
	binary struct {
		token
		op          string
		left, right expr
	}
	not struct {
		token
		of expr
	}
	minus struct {
		token
		of expr
	}
	isNull struct {
		token
		of  expr
		not bool
	}
	list struct {
		token
		items []expr
	}
	mapping struct {
		token
		members []property
	}
	labels struct {
		token
		of     expr
		labels [][]string
	}
	exists struct {
		token
		of pattern
	}
)

func (t token) place() token { return t }

// Bounds of a query, beside its length.
const (
	mostDepth = 60 // of parentheses and the like within each other
	mostParts = 24 // nodes and steps
	// MaxLength is the greatest length of a path.
	MaxLength = 8
)

type parser struct {
	tokens []token
	closed []int // of each parenthesis, the one that ends it; -1 = none
	at     int
	depth  int
	parts  int
}

// parse reads a query. The error is Invalid, with the place.
func parse(text string) (*query, error) {
	switch {
	case len(text) > MaxQuery:
		return nil, problem.New(problem.TooLarge, "a query has at most %d bytes", MaxQuery)
	case !utf8.ValidString(text):
		return nil, problem.New(problem.Malformed, "the query is not UTF-8")
	case strings.ContainsRune(text, 0):
		return nil, problem.New(problem.Malformed, "the query holds a NUL character")
	}
	tokens, err := lex(text)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens, closed: closings(tokens)}
	return p.query()
}

// closings finds the parentheses that belong together.
func closings(tokens []token) []int {
	closed := make([]int, len(tokens))
	var open []int
	for i, t := range tokens {
		closed[i] = -1
		switch {
		case t.is("("):
			open = append(open, i)
		case t.is(")") && len(open) > 0:
			closed[open[len(open)-1]] = i
			open = open[:len(open)-1]
		}
	}
	return closed
}

func (p *parser) peek() token { return p.tokens[p.at] }

// ahead is the token after this one.
func (p *parser) ahead() token { return p.tokens[min(p.at+1, len(p.tokens)-1)] }

func (p *parser) take() token {
	t := p.tokens[p.at]
	if t.kind != end {
		p.at++
	}
	return t
}

// accept takes the next token if it is what is asked for.
func (p *parser) accept(what string) bool {
	if p.peek().is(what) {
		p.take()
		return true
	}
	return false
}

func (p *parser) expect(what, where string) error {
	if t := p.peek(); !p.accept(what) {
		return t.fault("%s is expected %s, not %s", what, where, t)
	}
	return nil
}

// deeper counts what stands within each other. Its result must be called at the end.
func (p *parser) deeper() (func(), error) {
	if p.depth++; p.depth > mostDepth {
		return nil, p.peek().fault("too much stands within each other here: more than %d", mostDepth)
	}
	return func() { p.depth-- }, nil
}

// unknown are words that begin clauses which are not served. They are named, so that nobody has to guess.
var unknown = []string{
	"CREATE", "MERGE", "SET", "DELETE", "DETACH", "REMOVE", "FOREACH", "LOAD", "CALL", "UNION", "UNWIND", "WITH", "OPTIONAL", "USE", "START",
	"DROP", "ALTER", "GRANT", "REVOKE", "DENY", "EXPLAIN", "PROFILE", "INSERT", "FINISH", "USING", "SHOW", "TERMINATE", "YIELD", "CASE", "CYPHER",
	"FILTER", "LET", "NEXT", "NODETACH", "OFFSET", "IMPORT", "COMMIT", "BEGIN", "ROLLBACK",
}

// refuse is the error for a clause that is not served, or something that is no clause at all.
func refuse(t token) error {
	if t.kind == word && slices.Contains(unknown, strings.ToUpper(t.text)) {
		return t.fault("%s is not served: a query is made of MATCH, WHERE, RETURN, ORDER BY, SKIP and LIMIT, and reads only", strings.ToUpper(t.text))
	}
	return nil
}

func (p *parser) query() (*query, error) {
	q := &query{}
	for p.accept("MATCH") {
		m, err := p.match()
		if err != nil {
			return nil, err
		}
		q.matches = append(q.matches, m)
	}
	t := p.peek()
	if err := refuse(t); err != nil {
		return nil, err
	}
	switch {
	case len(q.matches) == 0 && !t.is("RETURN"):
		return nil, t.fault("MATCH is expected at the beginning, not %s", t)
	case !p.accept("RETURN"):
		return nil, t.fault("RETURN, MATCH or WHERE is expected, not %s", t)
	}
	var err error
	if q.returns, err = p.returns(); err != nil {
		return nil, err
	}
	p.accept(";")
	if t := p.peek(); t.kind != end {
		if err := refuse(t); err != nil {
			return nil, err
		}
		return nil, t.fault("the end is expected, not %s", t)
	}
	return q, nil
}

func (p *parser) match() (m match, err error) {
	for {
		one, err := p.path()
		if err != nil {
			return m, err
		}
		m.patterns = append(m.patterns, one)
		if !p.accept(",") {
			break
		}
	}
	if p.accept("WHERE") {
		m.where, err = p.expression()
	}
	return m, err
}

// path reads a pattern that may have a name.
func (p *parser) path() (pattern, error) {
	name := ""
	if t := p.peek(); (t.kind == word || t.kind == quoted) && p.ahead().is("=") {
		name = t.text
		p.take()
		p.take()
	}
	if t := p.peek(); t.kind == word {
		return pattern{}, t.fault("%s is not served: a pattern begins with a node in parentheses", t)
	}
	one, err := p.pattern()
	one.path = name
	return one, err
}

func (p *parser) pattern() (c pattern, err error) {
	c.at = p.peek()
	n, err := p.node()
	if err != nil {
		return c, err
	}
	c.nodes = append(c.nodes, n)
	for p.stepAhead() {
		s, err := p.step()
		if err != nil {
			return c, err
		}
		if n, err = p.node(); err != nil {
			return c, err
		}
		c.steps, c.nodes = append(c.steps, s), append(c.nodes, n)
	}
	return c, nil
}

// stepAhead reports whether a relation follows.
func (p *parser) stepAhead() bool { return p.stepAt(p.at) }

// stepAt reports whether a relation begins at a token: a hyphen before a bracket or another one, with or without an arrow.
func (p *parser) stepAt(i int) bool {
	at := func(n int) token { return p.tokens[min(i+n, len(p.tokens)-1)] }
	n := 0
	if at(0).is("<") {
		n = 1
	}
	return at(n).is("-") && (at(n+1).is("-") || at(n+1).is("["))
}

func (p *parser) part() error {
	if p.parts++; p.parts > mostParts {
		return p.peek().fault("a query has more than %d nodes and relations", mostParts)
	}
	return nil
}

func (p *parser) node() (n node, err error) {
	n.at = p.peek()
	if err := p.part(); err != nil {
		return n, err
	}
	if err := p.expect("(", "where a node begins"); err != nil {
		return n, err
	}
	if t := p.peek(); t.kind == word || t.kind == quoted {
		n.variable = p.take().text
	}
	if n.labels, err = p.labels(); err != nil {
		return n, err
	}
	if p.peek().is("{") {
		if n.props, err = p.members(); err != nil {
			return n, err
		}
	}
	if t := p.peek(); t.kind == parameter {
		return n, t.fault("a parameter as the properties of a node is not served: name them one by one")
	}
	if t := p.peek(); t.is("WHERE") {
		return n, t.fault("WHERE within a node is not served: it stands after the pattern")
	}
	return n, p.expect(")", "at the end of a node")
}

// labels reads :A:B, of which all, and :A|B, of which one must hold.
func (p *parser) labels() (groups [][]string, err error) {
	for p.accept(":") {
		var group []string
		for {
			t := p.take()
			if t.kind != word && t.kind != quoted {
				return nil, t.fault("a type is expected after a colon, not %s", t)
			}
			group = append(group, t.text)
			if !p.accept("|") {
				break
			}
			p.accept(":")
		}
		groups = append(groups, group)
		if t := p.peek(); t.is("&") || t.is("!") || t.is("%") {
			return nil, t.fault("%s is not served among types: use a colon or |", t)
		}
	}
	return groups, nil
}

func (p *parser) step() (s step, err error) {
	s.at, s.min, s.max = p.peek(), 1, 1
	if err := p.part(); err != nil {
		return s, err
	}
	s.from = p.accept("<")
	p.take() // the hyphen, as stepAhead has seen
	if p.accept("[") {
		if err := p.within(&s); err != nil {
			return s, err
		}
	}
	if err := p.expect("-", "after a relation"); err != nil {
		return s, err
	}
	s.to = p.accept(">")
	return s, nil
}

// within reads what stands in the brackets of a relation.
func (p *parser) within(s *step) error {
	if t := p.peek(); t.kind == word || t.kind == quoted {
		s.variable = p.take().text
	}
	groups, err := p.labels()
	switch {
	case err != nil:
		return err
	case len(groups) > 1:
		return s.at.fault("a relation has one type: separate those that it may have by |")
	case len(groups) == 1:
		s.types = groups[0]
	}
	if p.accept("*") {
		if err := p.length(s); err != nil {
			return err
		}
	}
	if p.peek().is("{") {
		if s.props, err = p.members(); err != nil {
			return err
		}
	}
	return p.expect("]", "at the end of a relation")
}

// length reads the bounds of a path after the star.
func (p *parser) length(s *step) (err error) {
	at := p.peek()
	s.many, s.min, s.max = true, 1, -1
	exact := false
	if p.peek().kind == number {
		if s.min, err = p.whole(); err != nil {
			return err
		}
		exact = true
	}
	if p.accept("..") {
		exact = false
		if p.peek().kind == number {
			if s.max, err = p.whole(); err != nil {
				return err
			}
		}
	}
	if exact {
		s.max = s.min
	}
	switch {
	case s.max < 0:
		return at.fault("a path needs an upper bound, such as *1..3: at most %d", MaxLength)
	case s.max > MaxLength:
		return at.fault("a path has a length of at most %d, not %d", MaxLength, s.max)
	case s.min > s.max:
		return at.fault("a path from %d to %d has no length", s.min, s.max)
	}
	return nil
}

func (p *parser) whole() (int, error) {
	t := p.take()
	n, err := strconv.Atoi(t.text)
	if err != nil || n > 1_000_000 {
		return 0, t.fault("%s is not a small whole number", t)
	}
	return n, nil
}

// members reads a map.
func (p *parser) members() (all []property, err error) {
	if err := p.expect("{", "at the beginning of a map"); err != nil {
		return nil, err
	}
	for !p.accept("}") {
		if len(all) > 0 {
			if err := p.expect(",", "between members of a map"); err != nil {
				return nil, err
			}
		}
		t := p.take()
		if t.kind != word && t.kind != quoted {
			return nil, t.fault("a name is expected in a map, not %s", t)
		}
		if err := p.expect(":", "after the name of a member"); err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		all = append(all, property{t.text, value})
	}
	return all, nil
}

func (p *parser) returns() (r returns, err error) {
	r.distinct = p.accept("DISTINCT")
	if p.peek().is("*") {
		r.items = []item{{at: p.take()}}
		if t := p.peek(); t.is(",") {
			return r, t.fault("nothing stands beside *")
		}
	} else if err = p.items(&r); err != nil {
		return r, err
	}
	if p.accept("ORDER") {
		if err := p.expect("BY", "after ORDER"); err != nil {
			return r, err
		}
		if err := p.orders(&r); err != nil {
			return r, err
		}
	}
	if p.accept("SKIP") {
		if r.skip, err = p.expression(); err != nil {
			return r, err
		}
	}
	if p.accept("LIMIT") {
		r.limit, err = p.expression()
	}
	return r, err
}

func (p *parser) items(r *returns) error {
	for {
		first := p.at
		value, err := p.expression()
		if err != nil {
			return err
		}
		one := item{at: p.tokens[first], value: value, name: p.written(first)}
		if p.accept("AS") {
			t := p.take()
			if t.kind != word && t.kind != quoted {
				return t.fault("a name is expected after AS, not %s", t)
			}
			one.name = t.text
		}
		if slices.ContainsFunc(r.items, func(other item) bool { return other.name == one.name }) {
			return one.at.fault("two columns are called %s", problem.Brief(one.name, 40))
		}
		r.items = append(r.items, one)
		if !p.accept(",") {
			return nil
		}
	}
}

// written is the text from a token to here, by which a column is called that has no name.
func (p *parser) written(first int) string {
	var b strings.Builder
	for i, t := range p.tokens[first:p.at] {
		if i > 0 && spaced(p.tokens[first+i-1], t) {
			b.WriteByte(' ')
		}
		switch t.kind {
		case text:
			b.WriteString("'" + t.text + "'")
		case parameter:
			b.WriteString("$" + t.text)
		default:
			b.WriteString(t.text)
		}
	}
	return b.String()
}

// spaced reports whether a space stands between two tokens of a column's name.
func spaced(before, after token) bool {
	for _, tight := range []string{"(", "[", ".", ":"} {
		if before.is(tight) {
			return false
		}
	}
	for _, tight := range []string{"(", ")", "[", "]", ".", ",", ":"} {
		if after.is(tight) {
			return before.is(",") // never
		}
	}
	return true
}

func (p *parser) orders(r *returns) error {
	for {
		at := p.peek()
		value, err := p.expression()
		if err != nil {
			return err
		}
		one := order{at: at, value: value}
		switch {
		case p.accept("DESC"), p.accept("DESCENDING"):
			one.descending = true
		case p.accept("ASC"), p.accept("ASCENDING"):
		}
		if r.order = append(r.order, one); !p.accept(",") {
			return nil
		}
	}
}
