package api_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEachOperationHasExamples: of what it takes, of what it answers when it succeeds, and of what its path names; each example is
// as its schema says.
func TestEachOperationHasExamples(t *testing.T) {
	t.Parallel()
	doc := plain(t, page(t))
	used := map[string]bool{}
	examples := func(at string, content object) {
		for media, v := range content {
			kind := v.(object)
			list, _ := kind["examples"].(object)
			if value, ok := kind["example"]; ok {
				list = object{"example": object{"value": value}}
			}
			if len(list) == 0 {
				t.Errorf("%s, %s: there is no example", at, media)
			}
			for _, v := range list {
				example := v.(object)
				if ref, ok := example["$ref"].(string); ok {
					used[ref] = true
					example = resolve(doc, ref)
				}
				require.NotNil(t, example, "%s, %s: the example does not exist", at, media)
				require.Contains(t, example, "value", "%s, %s", at, media)
				for _, fault := range against(doc, kind["schema"].(object), example["value"], "the example") {
					t.Errorf("%s, %s: %s", at, media, fault)
				}
			}
		}
	}
	for path, v := range doc["paths"].(object) {
		item := v.(object)
		for method, v := range item {
			if method == "parameters" {
				continue
			}
			operation := v.(object)
			at := strings.ToUpper(method) + " " + path
			for _, list := range []any{item["parameters"], operation["parameters"]} {
				parameters, _ := list.([]any)
				for _, v := range parameters {
					if p := followed(doc, v); p["in"] == "path" {
						require.Contains(t, p, "example", "%s: %v", at, p["name"])
					}
				}
			}
			if body, ok := operation["requestBody"]; ok {
				content, _ := followed(doc, body)["content"].(object)
				examples(at+" takes", content)
			}
			for status, v := range operation["responses"].(object) {
				if strings.HasPrefix(status, "2") {
					content, _ := followed(doc, v)["content"].(object)
					examples(at+" answers "+status, content)
				}
			}
		}
	}
	each(doc, func(key string, value any) { // those of refusals, too
		if ref, ok := value.(string); ok && key == "$ref" {
			used[ref] = true
		}
	})
	for name := range doc["components"].(object)["examples"].(object) {
		require.True(t, used["#/components/examples/"+name], "the example %s is of no operation", name)
	}
}

// TestAnExampleThatIsWrongIsSeen: each kind of fault.
func TestAnExampleThatIsWrongIsSeen(t *testing.T) {
	t.Parallel()
	doc := plain(t, page(t))
	for text, schema := range map[string]string{
		`{"id": 1}`: "Job", `{"state": 9}`: "Lock", `{}`: "Problem", `{"policy": {}, "from": "now"}`: "PolicyQuestion",
	} {
		value := plain(t, json.RawMessage(text))
		require.NotEmpty(t, against(doc, object{"$ref": "#/components/schemas/" + schema}, value, schema), text)
	}
}

// followed is the object itself, or what its $ref names.
func followed(doc object, v any) object {
	o := v.(object)
	if ref, ok := o["$ref"].(string); ok {
		return resolve(doc, ref)
	}
	return o
}

// plain returns a value as JSON has it, with its numbers as they are written.
func plain(t *testing.T, v any) object {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	require.NoError(t, d.Decode(&value))
	o, ok := value.(object)
	require.True(t, ok)
	return o
}
