package contracts_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// swagger is the fields of an API description that the tests read.
type swagger struct {
	Paths       map[string]map[string]any `json:"paths"`
	Definitions map[string]schema         `json:"definitions"`
}

type schema struct {
	Ref        string            `json:"$ref"`
	Type       string            `json:"type"`
	AllOf      []schema          `json:"allOf"`
	Items      *schema           `json:"items"`
	Enum       []any             `json:"enum"`
	Properties map[string]schema `json:"properties"`
	Additional *schema           `json:"additionalProperties"`
}

func loadSwagger(t testing.TB, path string) *swagger {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var s swagger
	require.NoError(t, json.Unmarshal(text, &s))
	require.NotEmpty(t, s.Paths)
	require.NotEmpty(t, s.Definitions)
	return &s
}

// coverage collects which properties of which definitions occurred in answers.
type coverage struct {
	*swagger
	shown  map[string]map[string]bool // definition -> properties
	differ map[string]bool            // Definition.property whose JSON type or enum differs deliberately
}

func newCoverage(s *swagger, differ ...string) *coverage {
	c := &coverage{swagger: s, shown: map[string]map[string]bool{}, differ: map[string]bool{}}
	for _, d := range differ {
		c.differ[d] = true
	}
	return c
}

// answer records which properties of the definition the value has.
func (c *coverage) answer(t testing.TB, definition string, value any) {
	t.Helper()
	c.visit(t, schema{Ref: definition}, value, definition)
}

func (c *coverage) visit(t testing.TB, s schema, value any, at string) {
	t.Helper()
	if value == nil {
		return
	}
	if len(s.AllOf) == 1 {
		s = s.AllOf[0]
	}
	name := ""
	if s.Ref != "" {
		name = strings.TrimPrefix(s.Ref, "#/definitions/")
		definition, ok := c.Definitions[name]
		require.True(t, ok, "%s names %s, which is not defined", at, name)
		s = definition
		if c.shown[name] == nil {
			c.shown[name] = map[string]bool{}
		}
	}
	if !c.differ[at] {
		require.Equal(t, kindOf(s), jsonKind(value), "%s is %v", at, value)
		if s.Enum != nil {
			require.Contains(t, s.Enum, value, at)
		}
	}
	switch value := value.(type) {
	case map[string]any:
		for property, of := range s.Properties {
			if have, ok := value[property]; ok {
				c.shown[name][property] = true
				c.visit(t, of, have, name+"."+property)
			}
		}
		if s.Additional != nil {
			for _, have := range value {
				c.visit(t, *s.Additional, have, at)
			}
		}
	case []any:
		for _, have := range value {
			if s.Items != nil {
				c.visit(t, *s.Items, have, at)
			}
		}
	}
}

func kindOf(s schema) string {
	switch s.Type {
	case "integer":
		return "number"
	case "":
		return "object"
	}
	return s.Type
}

func jsonKind(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	}
	return "number"
}

// missing lists the properties, as Definition.property, that did not occur in any answer, for every definition that
// did.
func (c *coverage) missing() []string {
	missing := []string{}
	for _, name := range slices.Sorted(maps.Keys(c.shown)) {
		for _, property := range slices.Sorted(maps.Keys(c.Definitions[name].Properties)) {
			if !c.shown[name][property] {
				missing = append(missing, name+"."+property)
			}
		}
	}
	return missing
}
