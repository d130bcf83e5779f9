package alto

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Updates asks for updates of resources (RFC 8895), or changes what an open stream has.
type Updates struct {
	Add    []Substream // by their ids
	Remove []string    // ids
	All    bool        // an empty remove: all that there were
}

// Substream is one resource of a stream of updates.
type Substream struct {
	ID         string          `json:"id"`
	ResourceID string          `json:"resource"`
	Tag        string          `json:"tag,omitempty"`     // of the version that the client has
	Whole      bool            `json:"whole,omitempty"`   // no patches are wanted
	Patches    string          `json:"patches,omitempty"` // media type of those that are wanted; merge patches without it
	Input      json.RawMessage `json:"input,omitempty"`   // what the resource would be asked with
}

// UpdateControlEvent is what a stream says about itself.
type UpdateControlEvent struct {
	ControlURI  string   `json:"control-uri,omitempty"`
	Started     []string `json:"started,omitempty"`
	Stopped     []string `json:"stopped,omitempty"`
	Description string   `json:"description,omitempty"`
}

// substreamID has no dot: what follows one in the name of an event is the part of a resource.
var substreamID = regexp.MustCompile(`^[A-Za-z0-9\-:@_]{1,64}$`)

// ParseUpdates reads the request for a stream, which must add something, or one of its control.
func ParseUpdates(body []byte, control bool) (u Updates, fault *Error) {
	f, fault := parse(body)
	if fault != nil {
		return u, fault
	}
	if f.has("remove") && control {
		if u.Remove, fault = f.texts("remove"); fault != nil {
			return u, fault
		}
		u.All = len(u.Remove) == 0
	}
	if !f.has("add") {
		if control && f.has("remove") {
			return u, nil
		}
		return u, Missing("add")
	}
	add, fault := f.object("add")
	if fault != nil {
		return u, fault
	}
	for _, id := range slices.Sorted(maps.Keys(add.members)) {
		if !substreamID.MatchString(id) {
			return u, BadValue("add", id)
		}
		s, fault := add.substream(id)
		if fault != nil {
			return u, fault
		}
		u.Add = append(u.Add, s)
	}
	if len(u.Add) == 0 && !f.has("remove") {
		return u, BadValue("add", "{}")
	}
	return u, nil
}

func (f fields) substream(id string) (s Substream, fault *Error) {
	o, fault := f.object(id)
	if fault != nil {
		return s, fault
	}
	s.ID = id
	if o.has("input") {
		s.Input, _ = json.Marshal(o.members["input"]) // in the one form in which it is kept and compared
	}
	if s.ResourceID, fault = o.text("resource-id"); fault != nil {
		return s, fault
	}
	if o.has("tag") {
		if s.Tag, fault = o.text("tag"); fault != nil {
			return s, fault
		}
	}
	switch string(o.members["incremental-changes"]) {
	case "", "true":
	case "false":
		s.Whole = true
	default:
		return s, &Error{Code: InvalidFieldType, Field: o.at + "incremental-changes"}
	}
	if o.has("incremental-change-media-types") {
		s.Patches, fault = o.patches("incremental-change-media-types")
	}
	return s, fault
}

// patches reads which patches are wanted: the first that there are of those that are named, as the directory names them. RFC 8895
// leaves the choice to the server, and what it does not know is ignored, so that other servers can be asked in the same way.
func (f fields) patches(name string) (string, *Error) {
	text, fault := f.text(name)
	if fault != nil {
		return "", fault
	}
	for one := range strings.SplitSeq(text, ",") {
		switch one = strings.TrimSpace(one); one {
		case MergePatch:
			return "", nil
		case JSONPatch:
			return JSONPatch, nil
		}
	}
	return "", &Error{Code: InvalidFieldValue, Field: f.at + name, Value: text}
}

// Below returns the error with its field below a path: what is wrong with an input is wrong in the request that has it.
func (e *Error) Below(path string) *Error {
	out := *e
	if out.Code == Syntax { // the request as a whole could be read
		out.Code, out.SyntaxError, out.Field = InvalidFieldType, "", ""
	}
	if out.Field != "" {
		path += "/"
	}
	out.Field = path + out.Field
	return &out
}

// Patch returns the merge patch (RFC 7396) that makes one document the other; none if they are equal. Neither may have members that
// are null. What is equal is not taken apart, so that a patch of a large map costs little.
func Patch(from, to []byte) (json.RawMessage, error) {
	if bytes.Equal(from, to) {
		return nil, nil
	}
	if !isObject(from) || !isObject(to) {
		return to, nil
	}
	before, after, err := members(from, to)
	if err != nil {
		return nil, err
	}
	out := map[string]json.RawMessage{}
	for name := range before {
		if _, stays := after[name]; !stays {
			out[name] = json.RawMessage("null")
		}
	}
	for name, value := range after {
		former, was := before[name]
		if !was {
			out[name] = value
			continue
		}
		change, err := Patch(former, value)
		if err != nil {
			return nil, err
		}
		if change != nil {
			out[name] = change
		}
	}
	return json.Marshal(out)
}

// Operation is one of a JSON patch (RFC 6902).
type Operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// Operations returns the JSON patch (RFC 6902) that makes one document the other; none if they are equal. Members may be null. As in
// a merge patch, a list that differs is replaced as a whole, and what is equal is not taken apart.
func Operations(from, to []byte) (json.RawMessage, error) {
	all, err := operations(nil, "", from, to)
	if err != nil || all == nil {
		return nil, err
	}
	return json.Marshal(all)
}

func operations(all []Operation, path string, from, to []byte) ([]Operation, error) {
	if bytes.Equal(from, to) {
		return all, nil
	}
	if !isObject(from) || !isObject(to) {
		return append(all, Operation{"replace", path, to}), nil
	}
	before, after, err := members(from, to)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, stays := after[name]; !stays {
			all = append(all, Operation{"remove", path + "/" + pointer.Replace(name), nil})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		at := path + "/" + pointer.Replace(name)
		former, was := before[name]
		if !was {
			all = append(all, Operation{"add", at, after[name]})
			continue
		}
		if all, err = operations(all, at, former, after[name]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// pointer writes a name as part of a path (RFC 6901).
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// members takes two objects apart.
func members(from, to []byte) (before, after map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(from, &before); err != nil {
		return nil, nil, fmt.Errorf("read the former document: %w", err)
	}
	if err := json.Unmarshal(to, &after); err != nil {
		return nil, nil, fmt.Errorf("read the present document: %w", err)
	}
	return before, after, nil
}

func isObject(text []byte) bool { return len(text) > 0 && text[0] == '{' }
