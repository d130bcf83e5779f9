package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConstantsThatStartAsStatementsAreFound(t *testing.T) {
	const source = `package p

const columns = "a, b"

const all = "select " + columns + " from t"

func statements(where string) []string {
	return []string{
		"\n  with x as (select 1) select * from x",
		"delete from t where " + where,
		"select " + columns + " from u",
		"selected nodes",
		"the nodes",
	}
}
`
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "p.go", source, 0)
	require.NoError(t, err)
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	_, err = new(types.Config).Check("p", files, []*ast.File{file}, info)
	require.NoError(t, err)
	require.Equal(t, []string{
		"select a, b from t",
		"\n  with x as (select 1) select * from x",
		"delete from t where ",
		"select a, b from u",
	}, constants(file, info))
}
