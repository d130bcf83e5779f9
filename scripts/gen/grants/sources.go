package main

import (
	"context"
	"errors"
	"go/ast"
	"go/constant"
	"go/types"
	"regexp"

	"golang.org/x/tools/go/packages"
)

// startsAsStatement matches texts that may be statements. Which of them are, Postgres says.
var startsAsStatement = regexp.MustCompile(`^\s*(select|insert into|update|delete from|with)\s`)

// written returns the constant texts of the sources that start as statements do, so that what no test has made any function do counts
// too where a program carries it.
func written(ctx context.Context) ([]string, error) {
	list, err := packages.Load(&packages.Config{Context: ctx, Mode: packages.LoadSyntax}, "./functions/...", "./shared/...")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, p := range list {
		for _, fault := range p.Errors {
			return nil, fault
		}
		for _, file := range p.Syntax {
			found = append(found, constants(file, p.TypesInfo)...)
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no statement is written in the sources")
	}
	return found, nil
}

// constants returns those texts of a file. A text that is put together from constants is taken as a whole, as the compiler does.
func constants(file *ast.File, info *types.Info) []string {
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		expression, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		value := info.Types[expression].Value
		if value == nil || value.Kind() != constant.String {
			return true
		}
		if text := constant.StringVal(value); startsAsStatement.MatchString(text) {
			found = append(found, text)
		}
		return false
	})
	return found
}
