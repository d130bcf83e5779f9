package tree_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/scripts/licences"
)

// TestLicences: every module that one of our programs links is on the page with its licences, and under none of the refused
// ones.
func TestLicences(t *testing.T) {
	t.Parallel()
	modules, err := licences.Linked(root)
	require.NoError(t, err)
	text := page(t, "shared/docs/licences.md")
	listed := map[string]bool{}
	for _, m := range modules {
		listed[m.Path] = true
		require.Contains(t, text, fmt.Sprintf("| %s | %s |", m.Path, m.Version), "make generate writes the page")
		for _, l := range m.Licences {
			require.NotContains(t, licences.Refused, l, m.Path)
		}
	}
	require.True(t, listed["github.com/jackc/pgx/v5"])
}

// TestLicencesAreTold: the texts are told apart, whatever their line breaks are.
func TestLicencesAreTold(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]licences.Licence{
		"                    GNU GENERAL PUBLIC LICENSE\n                       Version 3, 29 June 2007":                               "GPL",
		"GNU LESSER GENERAL PUBLIC LICENSE\nVersion 2.1":                                                                               "LGPL",
		"GNU AFFERO GENERAL PUBLIC LICENSE Version 3":                                                                                  "AGPL",
		"Business Source License 1.1":                                                                                                  "BUSL-1.1",
		"Permission is hereby granted, free of\ncharge, to any person":                                                                 "MIT",
		"Redistribution and use in source\n * and binary forms. Neither the name of Google Inc. nor the names of its\n * contributors": "BSD-3-Clause",
		"all rights reserved": "",
	} {
		require.Equal(t, want, licences.Named(text), text)
	}
}
