package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
)

// change is one thing that can be done otherwise. It is made by text around, or in the place of, what the file has; so the lines of the
// file stay what they are.
type change struct {
	number int // what it is called by while the tests run, from 1
	file   *file
	line   int
	what   string
	edits  func(number int) []edit
}

func (c *change) position() string {
	return fmt.Sprintf("%s:%d", filepath.Join(filepath.Base(filepath.Dir(c.file.path)), filepath.Base(c.file.path)), c.line)
}

// edit is a piece of text: before what begins there, after what ends there, or instead of so many bytes.
type edit struct {
	at   token.Pos
	text string
	kind kind
	cut  int
}

type kind int

const (
	before kind = iota
	after
	instead
)

// around puts a node between two pieces of text.
func around(n ast.Node, head, tail string) []edit {
	return []edit{{at: n.Pos(), text: head, kind: before}, {at: n.End(), text: tail, kind: after}}
}

// call makes an operation a call: the head, the first operand, what goes between, the second one, and the tail.
func call(n *ast.BinaryExpr, head, between, tail string) []edit {
	return append(around(n, head, tail), edit{at: n.OpPos, text: between, kind: instead, cut: len(n.Op.String())})
}

// find lists what can be changed in the file.
func (f *file) find(info *types.Info) []change {
	var all []change
	var within []ast.Node // from the file to the node, which is the last
	ast.Inspect(f.tree, func(n ast.Node) bool {
		if n == nil {
			within = within[:len(within)-1]
			return true
		}
		if fixed(n, within) {
			return false
		}
		within = append(within, n)
		finder{f, info, &all}.node(n, within)
		return true
	})
	return all
}

// fixed tells whether a node has to stay constant: what const declares, and lengths of arrays. Types and imports have nothing to change.
func fixed(n ast.Node, within []ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok != token.VAR
	case *ast.ArrayType, *ast.FuncType, *ast.StructType:
		return true
	case ast.Expr:
		parent, ok := within[len(within)-1].(*ast.KeyValueExpr)
		if !ok || parent.Key != n {
			return false
		}
		_, name := n.(*ast.Ident) // of a field, mostly
		return name
	}
	return false
}

type finder struct {
	file *file
	info *types.Info
	all  *[]change
}

func (f finder) add(at token.Pos, what string, edits func(number int) []edit) {
	*f.all = append(*f.all, change{file: f.file, line: f.file.set.Position(at).Line, what: what, edits: edits})
}

func (f finder) node(n ast.Node, within []ast.Node) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		f.operation(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.not(n, n.Pos(), "no !")
		}
	case *ast.Ident:
		if other := map[string]string{"true": "false", "false": "true"}[n.Name]; other != "" {
			f.not(n, n.Pos(), other+" for "+n.Name)
		}
	case *ast.BasicLit:
		if name := f.typeOf(n); n.Kind == token.INT && name != "" {
			f.add(n.Pos(), n.Value+"+1 for "+n.Value, func(number int) []edit {
				return around(n, fmt.Sprintf("mutant.Number[%s](%d, ", name, number), ")")
			})
		}
	case *ast.IfStmt:
		f.add(n.Cond.Pos(), "never, for if", func(number int) []edit {
			return around(n.Cond, fmt.Sprintf("!mutant.On(%d) && (", number), ")")
		})
	case *ast.ExprStmt:
		if _, isCall := n.X.(*ast.CallExpr); isCall && inList(within) {
			f.leave(n, "no call")
		}
	case *ast.IncDecStmt:
		if inList(within) {
			f.leave(n, "no "+n.Tok.String())
		}
	case *ast.BranchStmt:
		if n.Tok == token.CONTINUE && n.Label == nil {
			f.add(n.Pos(), "break for continue", func(number int) []edit {
				return []edit{{at: n.Pos(), text: fmt.Sprintf("if mutant.On(%d) { break }; ", number), kind: before}}
			})
		}
	}
}

// inList tells whether the last node stands in a list of statements, and not in the head of one.
func inList(within []ast.Node) bool {
	switch within[len(within)-2].(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		return true
	}
	return false
}

func (f finder) leave(n ast.Node, what string) {
	f.add(n.Pos(), what, func(number int) []edit {
		return around(n, fmt.Sprintf("if !mutant.On(%d) { ", number), " }")
	})
}

func (f finder) not(n ast.Node, at token.Pos, what string) {
	f.add(at, what, func(number int) []edit {
		return around(n, "((", fmt.Sprintf(") != mutant.On(%d))", number))
	})
}

// opposites are what a comparison is when it does not hold.
var opposites = map[token.Token]string{
	token.LSS: ">=", token.GEQ: "<", token.GTR: "<=", token.LEQ: ">", token.EQL: "!=", token.NEQ: "==",
}

// functions are called in the place of an operation, and what it becomes by them. Those that do not need their second operand always
// take it as a function, with its line break if it has one.
var functions = map[token.Token]struct {
	name, other, between, tail string
	numbers                    bool // only of these, since + is of strings too
}{
	token.LSS:  {"mutant.Less", "<=", ",", ")", false},
	token.LEQ:  {"mutant.AtMost", "<", ",", ")", false},
	token.GTR:  {"!mutant.AtMost", ">=", ",", ")", false}, // a > b is not (a <= b)
	token.GEQ:  {"!mutant.Less", ">", ",", ")", false},
	token.ADD:  {"mutant.Add", "-", ",", ")", true},
	token.SUB:  {"mutant.Sub", "+", ",", ")", true},
	token.MUL:  {"mutant.Mul", "/", ",", ")", true},
	token.QUO:  {"mutant.Quo", "*", ",", ")", true},
	token.LAND: {"mutant.And", "||", ", func() bool { return (", ") })", false},
	token.LOR:  {"mutant.Or", "&&", ", func() bool { return (", ") })", false},
}

// operation adds what an operation of two operands can become.
func (f finder) operation(n *ast.BinaryExpr) {
	if opposite := opposites[n.Op]; opposite != "" {
		f.not(n, n.OpPos, opposite+" for "+n.Op.String())
	}
	function, ok := functions[n.Op]
	if !ok || function.numbers && f.typeOf(n) == "" {
		return
	}
	f.add(n.OpPos, function.other+" for "+n.Op.String(), func(number int) []edit {
		return call(n, fmt.Sprintf("%s(%d, ", function.name, number), function.between, function.tail)
	})
}

// typeOf names the type of a number as the file can; it is "" for what is none, or where the file has no name for it.
func (f finder) typeOf(e ast.Expr) string {
	value, known := f.info.Types[e]
	if !known {
		return ""
	}
	basic, ok := value.Type.Underlying().(*types.Basic)
	if !ok || basic.Info()&(types.IsInteger|types.IsFloat) == 0 {
		return ""
	}
	if basic.Info()&types.IsUntyped != 0 {
		return types.Default(value.Type).String()
	}
	missing := false
	name := types.TypeString(value.Type, func(p *types.Package) string {
		if p == f.file.pkg {
			return ""
		}
		name := f.file.imports[p.Path()]
		missing = missing || name == ""
		return name
	})
	if missing {
		return ""
	}
	return name
}
