package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions"
)

// What is not asked for anything is not measured, and nobody would miss it.
func TestEveryFunctionHasACase(t *testing.T) {
	t.Parallel()
	var asked, there []string
	for name := range cases {
		asked = append(asked, name)
	}
	for _, entry := range functions.Registry {
		there = append(there, entry.Name)
	}
	require.ElementsMatch(t, there, asked, "cold_cases.go and cold_policies.go hold one request for each function")
}
