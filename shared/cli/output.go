package cli

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

// format is how a command shows what it found.
type format string

const (
	asTable format = "table"
	asWide  format = "wide"
	asJSON  format = "json"
	asYAML  format = "yaml"

	asDescriptor format = "descriptor" // of one application: the document as it was handed in
)

// structured reports whether the output is for programs.
func (f format) structured() bool { return f == asJSON || f == asYAML }

// print writes v as JSON or YAML.
func (s *session) print(f format, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if f == asYAML {
		if text, err = yaml.JSONToYAML(text); err != nil {
			return err
		}
		_, err = s.out.Write(text)
		return err
	}
	_, err = fmt.Fprintf(s.out, "%s\n", text)
	return err
}

// printOne writes one element of a stream: a line of JSON, or a YAML document.
func (s *session) printOne(f format, v any) error {
	if f == asYAML {
		if _, err := fmt.Fprintln(s.out, "---"); err != nil {
			return err
		}
		return s.print(f, v)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.out, "%s\n", text)
	return err
}
