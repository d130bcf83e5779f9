// Package licences says under which licences a module is, by the texts in its folder.
package licences

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// Licence is one that a module is under.
type Licence string

// known are licences by words that their texts, and no others, have; the first that fits counts. The identifiers are SPDX'.
var known = []struct {
	id   Licence
	text *regexp.Regexp
}{
	{"AGPL", words("gnu affero general public license version")},
	{"LGPL", words("gnu lesser general public license version")},
	{"BUSL-1.1", words("business source license")},
	{"SSPL-1.0", words("server side public license")},
	{"Elastic-2.0", words("elastic license 2")},
	{"Apache-2.0", words("apache license,? version 2\\.0")},
	{"GPL", words("gnu general public license version")},
	{"MPL-2.0", words("mozilla public license,? version 2\\.0")},
	{"EPL-2.0", words("eclipse public license - v 2\\.0")},
	{"BSD-3-Clause", words("neither the names? of .{1,120} nor the names of (its|any) contributors|may not be used to endorse or promote")},
	{"BSD-2-Clause", words("redistributions in binary form must reproduce")},
	{"MIT", words("permission is hereby granted, free of charge")},
	{"ISC", words("permission to use, copy, modify, and(/or)? distribute this software")},
	{"Unlicense", words("free and unencumbered software released into the public domain")},
	{"Public domain", words("put( it)? into the public domain|in the public domain")},
	{"CC0-1.0", words("cc0 1\\.0 universal")},
}

// Refused are licences of which nothing may be linked.
var Refused = []Licence{"AGPL", "LGPL", "GPL", "BUSL-1.1", "SSPL-1.0", "Elastic-2.0"}

func words(expression string) *regexp.Regexp { return regexp.MustCompile("(?i)" + expression) }

// spaces are what separates words: line breaks, and the signs of comments.
var spaces = regexp.MustCompile(`[\s*#;>]+`)

// Of returns the licences of the module in the folder, sorted. A module may be under several, for its parts.
func Of(dir string) ([]Licence, error) {
	var all []Licence
	for _, pattern := range []string{"LICEN[CS]E*", "COPYING*", "[Ll]icen[cs]e*", "UNLICENSE*"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if info, err := os.Stat(file); err != nil || info.IsDir() || slices.Contains(others, filepath.Ext(file)) {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			one := Named(string(text))
			if one == "" {
				return nil, fmt.Errorf("%s: its licence is not known", file)
			}
			if !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no licence", dir)
	}
	slices.Sort(all)
	return all, nil
}

// others are endings of files about what is not linked: documentation, and code about licences.
var others = []string{".docs", ".go"}

// Named is the licence of a text; "" = it is not known.
func Named(text string) Licence {
	text = spaces.ReplaceAllString(text, " ")
	for _, l := range known {
		if l.text.MatchString(text) {
			return l.id
		}
	}
	return ""
}
