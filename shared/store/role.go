package store

import "strings"

// Role names the role of Postgres that has the rights of a function.
func Role(function string) string { return "littoral_" + strings.ReplaceAll(function, "-", "_") }
