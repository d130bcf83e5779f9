package compose

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/compose-spec/compose-go/v2/schema"
	"github.com/compose-spec/compose-go/v2/template"
	"github.com/compose-spec/compose-go/v2/tree"
	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/compose/reading"
)

// source is the files of a component before the library reads them.
type source struct {
	names    []string
	models   []map[string]any
	given    map[string]string // to variables
	profiles []string
}

// extension is the form of the part that only Littoral reads.
type extension struct {
	Ours struct {
		Profiles  []string           `yaml:"profiles"`
		Variables map[string]*string `yaml:"variables"` // nil is no value
	} `yaml:"x-littoral"`
}

// open parses the files, and reads what they say to Littoral.
func open(files []File) (*source, []reading.Finding) {
	s := &source{given: map[string]string{}}
	var bad []reading.Finding
	for i, f := range files {
		var model map[string]any
		if err := yaml.Unmarshal([]byte(f.Text), &model); err != nil {
			bad = append(bad, at(i, nil, "is no compose file: %v", err))
		}
		s.names, s.models = append(s.names, f.Name), append(s.models, model)
		var said extension
		if err := yaml.Unmarshal([]byte(f.Text), &said); err != nil {
			bad = append(bad, at(i, []string{Extension}, "must be an object with profiles, a list of names, and variables, texts by their names"))
		}
		s.profiles = append(s.profiles, said.Ours.Profiles...)
		for name, value := range said.Ours.Variables {
			if value != nil {
				s.given[name] = *value
			}
		}
	}
	return s, bad
}

// at is a finding at the keys.
func at(file int, keys []string, format string, args ...any) reading.Finding {
	return reading.Finding{Place: reading.Place{File: file, Keys: slices.Clone(keys)}, Detail: fmt.Sprintf(format, args...)}
}

// visit calls f with the value that the keys lead to in each file, of which "*" stands for any.
func (s *source) visit(f func(file int, keys []string, v any), keys ...string) {
	for i, model := range s.models {
		visit(model, nil, keys, func(keys []string, v any) { f(i, keys, v) })
	}
}

func visit(v any, taken, left []string, f func(keys []string, v any)) {
	if len(left) == 0 {
		if v != nil {
			f(taken, v)
		}
		return
	}
	m, _ := v.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if left[0] == "*" || left[0] == key {
			visit(m[key], append(slices.Clone(taken), key), left[1:], f)
		}
	}
}

const isFile = "names a file, and none travels with it: write its content here"

// named finds the keys that name files which the library would read: those of the machine that this runs on.
func (s *source) named() (all []reading.Finding) {
	for _, keys := range [][]string{
		{"include"}, {"services", "*", "env_file"}, {"services", "*", "label_file"}, {"services", "*", "extends", "file"},
	} {
		s.visit(func(file int, keys []string, _ any) { all = append(all, at(file, keys, isFile)) }, keys...)
	}
	return all
}

// needed finds what else the files need of the machine where they were written.
func (s *source) needed() (all []reading.Finding) {
	for _, section := range []string{"configs", "secrets"} {
		s.visit(func(file int, keys []string, _ any) { all = append(all, at(file, keys, isFile)) }, section, "*", "file")
	}
	s.visit(func(file int, keys []string, _ any) {
		all = append(all, at(file, keys, "cannot be built where it runs, since no file travels with it: name an image"))
	}, "services", "*", "build")
	return all
}

// attributes are the keys that compose has, below each other.
type attributes map[string]attributes

var specified = sync.OnceValue(func() attributes {
	all := attributes{}
	for _, path := range schema.AttributePaths() {
		below := all
		for _, part := range path.Parts() {
			if below[part] == nil {
				below[part] = attributes{}
			}
			below = below[part]
		}
	}
	return all
})

// leaveOutUnknown takes out the keys that compose does not have, for which its library would refuse the whole file.
func (s *source) leaveOutUnknown() (all []reading.Finding) {
	for i, model := range s.models {
		specified().prune(model, nil, func(keys []string) {
			all = append(all, at(i, keys, "is no key that compose has here, and is left out"))
		})
	}
	return all
}

// prune removes what is not among the attributes. Where none are known, everything may be.
func (a attributes) prune(v any, keys []string, unknown func(keys []string)) {
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			a[tree.PathMatchList].prune(e, append(keys, strconv.Itoa(i)), unknown)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			below, known := a[key]
			if !known {
				below, known = a[tree.PathMatchAll]
			}
			switch keys := append(keys, key); {
			case len(a) == 0 || strings.HasPrefix(key, "x-"):
			case known:
				below.prune(v[key], keys, unknown)
			default:
				delete(v, key)
				unknown(keys)
			}
		}
	}
}

// bare finds the references to variables without a default, in a text without doubled dollars.
var bare = regexp.MustCompile(`\$(?:\{(\w+)\}|([A-Za-z_]\w*))`)

// put puts the values that are given into a text. One that is missing, and has no default, is empty; it is the first of them
// that is named.
func (s *source) put(text string) (out, missing string, err error) {
	if !strings.Contains(text, "$") {
		return text, "", nil
	}
	bareNames := map[string]bool{}
	for _, match := range bare.FindAllStringSubmatch(strings.ReplaceAll(text, "$$", ""), -1) {
		bareNames[match[1]+match[2]] = true
	}
	out, err = template.Substitute(text, func(name string) (string, bool) {
		value, ok := s.given[name]
		if !ok && bareNames[name] {
			if missing == "" {
				missing = name
			}
			return "", true // or the library would log it
		}
		return value, ok
	})
	return out, missing, err
}

// filled returns the models with the values of variables, and finds the variables that have none.
func (s *source) filled() (models []map[string]any, all []reading.Finding) {
	for i, model := range s.models {
		filled, _ := s.fill(model, nil, func(keys []string, detail string) { all = append(all, at(i, keys, "%s", detail)) }).(map[string]any)
		models = append(models, filled)
	}
	return models, all
}

func (s *source) fill(v any, keys []string, fault func(keys []string, detail string)) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out[key] = s.fill(v[key], append(keys, key), fault)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = s.fill(e, append(keys, strconv.Itoa(i)), fault)
		}
		return out
	case string:
		out, missing, err := s.put(v)
		var required *template.MissingRequiredError
		switch {
		case errors.As(err, &required):
			fault(keys, fmt.Sprintf("the variable %q has no value: %s", required.Variable, required.Reason))
		case err != nil:
			fault(keys, fmt.Sprintf("%q has no form of a variable: write $$ for a dollar", v))
		case missing != "":
			fault(keys, fmt.Sprintf("the variable %q has no value: write it as ${%[1]s:-default}, give it one in %s.variables, or write "+
				"$$ for a dollar", missing, Extension))
		}
		return out
	}
	return v
}

// inDefault reports whether a service names the network that all are in which name none.
func (s *source) inDefault() (named bool) {
	const name = "default"
	s.visit(func(_ int, _ []string, v any) {
		switch in := v.(type) {
		case []any:
			named = named || slices.Contains(in, any(name))
		case map[string]any:
			_, there := in[name]
			named = named || there
		}
	}, "services", "*", "networks")
	return named
}

// place returns the keys in the last file that has them, or the most of them.
func (s *source) place(keys ...string) reading.Place {
	best := reading.Place{File: len(s.models) - 1}
	for i := len(s.models) - 1; i >= 0; i-- {
		n := 0
		for v := any(s.models[i]); n < len(keys); n++ {
			if v = child(v, keys[n]); v == nil {
				break
			}
		}
		if n > len(best.Keys) {
			best = reading.Place{File: i, Keys: keys[:n]}
		}
	}
	return best
}

// child returns the value of a key or of an entry; nil for none.
func child(v any, key string) any {
	switch v := v.(type) {
	case map[string]any:
		return v[key]
	case []any:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(v) {
			return v[i]
		}
	}
	return nil
}
