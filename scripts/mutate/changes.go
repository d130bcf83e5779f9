package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// change replaces some bytes of a file.
type change struct {
	file     string // absolute
	source   []byte
	from, to int
	with     string
	line     int
	what     string
}

func (c *change) apply() []byte {
	return append(append(append([]byte{}, c.source[:c.from]...), c.with...), c.source[c.to:]...)
}

func (c *change) position(dir string) string {
	return fmt.Sprintf("%s:%d", filepath.Join(filepath.Base(dir), filepath.Base(c.file)), c.line)
}

// operators are what stands in the place of another one.
var operators = map[token.Token][]token.Token{
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL}, token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL},
}

// changesOf lists what can be changed in the files of a package that are not tests.
func changesOf(dir string) ([]change, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var all []change
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, source, 0)
		if err != nil {
			return nil, err
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			add := func(from, to token.Pos, with, what string) {
				at := set.Position(from)
				all = append(all, change{file, source, at.Offset, set.Position(to).Offset, with, at.Line, what})
			}
			visit(n, add)
			return true
		})
	}
	return all, nil
}

// visit adds the changes of one node.
func visit(n ast.Node, add func(from, to token.Pos, with, what string)) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		for _, other := range operators[n.Op] {
			add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), other.String(), fmt.Sprintf("%s for %s", other, n.Op))
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			add(n.OpPos, n.OpPos+1, "", "no !")
		}
	case *ast.Ident:
		if other := map[string]string{"true": "false", "false": "true"}[n.Name]; other != "" {
			add(n.Pos(), n.End(), other, other+" for "+n.Name)
		}
	case *ast.BasicLit:
		if n.Kind == token.INT {
			add(n.Pos(), n.End(), n.Value+"+1", n.Value+"+1 for "+n.Value)
		}
	case *ast.IfStmt:
		add(n.Cond.Pos(), n.Cond.Pos(), "false && ", "never, for if")
	case *ast.ExprStmt:
		if _, call := n.X.(*ast.CallExpr); call {
			add(n.Pos(), n.End(), "", "no call")
		}
	case *ast.IncDecStmt:
		add(n.Pos(), n.End(), "", "no "+n.Tok.String())
	case *ast.BranchStmt:
		if n.Tok == token.CONTINUE && n.Label == nil {
			add(n.Pos(), n.End(), "break", "break for continue")
		}
	}
}
