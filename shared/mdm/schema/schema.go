// Package schema holds payloads against the JSON schemas that were registered for their types.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/problem"
)

// MaxSize bounds a schema, in bytes.
const MaxSize = 64 << 10

// alone refuses to load what a schema refers to: neither files nor other servers are asked.
type alone struct{}

func (alone) Load(url string) (any, error) {
	return nil, fmt.Errorf("refers to %s, and a schema must stand alone", url)
}

// Check compiles a schema, of draft 2020-12 if it does not say which. The error is Malformed or Invalid.
func Check(text []byte) error {
	if !json.Valid(text) {
		return problem.New(problem.Malformed, "the body is not valid JSON")
	}
	if text = bytes.TrimLeft(text, " \t\r\n"); text[0] != '{' {
		return problem.New(problem.Invalid, "a schema is an object")
	}
	if len(text) > MaxSize {
		return problem.New(problem.TooLarge, "a schema has at most %d bytes", MaxSize)
	}
	if bytes.Contains(text, []byte(`\u0000`)) {
		return problem.New(problem.Invalid, "a text holds a NUL character")
	}
	if _, err := compile(text); err != nil {
		return problem.New(problem.Invalid, "this is no JSON schema: %s", problem.Brief(err.Error(), 500))
	}
	return nil
}

// name is what schemas are called within the compiler.
const name = "urn:mdm:schema"

func compile(text []byte) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(alone{})
	if err := c.AddResource(name, document); err != nil {
		return nil, err
	}
	return c.Compile(name)
}

// Validate holds the payloads of upserts against the schemas that they name. Those whose schema nobody has registered pass.
func Validate(changes []mdm.Change, schemas []mdm.Schema) error {
	if len(schemas) == 0 {
		return nil
	}
	compiled := map[mdm.Ref]*jsonschema.Schema{}
	for _, s := range schemas {
		c, err := compile(s.Schema)
		if err != nil {
			return fmt.Errorf("compile schema %s: %w", s.Ref(), err)
		}
		compiled[s.Ref()] = c
	}
	var faults problem.Faults
	for i, change := range changes {
		if s := compiled[change.Ref]; s != nil && !change.Delete {
			path := "payload"
			if len(changes) > 1 {
				path = fmt.Sprintf("[%d].payload", i)
			}
			validate(s, change.Event.Payload, path, &faults)
		}
	}
	return faults.Err("the events are not accepted")
}

func validate(s *jsonschema.Schema, payload []byte, path string, faults *problem.Faults) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(payload))
	if err == nil {
		err = s.Validate(value)
	}
	var wrong *jsonschema.ValidationError
	switch {
	case err == nil:
	case errors.As(err, &wrong):
		leaves(wrong, path, faults)
	default:
		faults.Add(path, 0, "%v", err)
	}
}

// english writes the sentences of the library.
var english = message.NewPrinter(language.English)

// leaves reports the innermost causes: what holds them says no more than that they are there.
func leaves(e *jsonschema.ValidationError, path string, faults *problem.Faults) {
	if len(e.Causes) == 0 {
		at := path
		if len(e.InstanceLocation) > 0 {
			at += "." + strings.Join(e.InstanceLocation, ".")
		}
		faults.Add(at, 0, "%s", e.ErrorKind.LocalizedString(english))
		return
	}
	for _, cause := range e.Causes {
		leaves(cause, path, faults)
	}
}
