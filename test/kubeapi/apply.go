package kubeapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// owners are the managers of one field.
type owners map[string]bool

// leaves lists the fields of what is applied. A list is one field: the double knows no keys of lists.
func leaves(in map[string]any, at string, into map[string]any) {
	for name, value := range in {
		path := at + "\x00" + name
		if at == "" && (name == "apiVersion" || name == "kind" || name == "status") ||
			at == "\x00metadata" && name != "labels" && name != "annotations" {
			continue
		}
		if nested, ok := value.(map[string]any); ok && len(nested) > 0 {
			leaves(nested, path, into)
			continue
		}
		into[path] = value
	}
}

func fieldsOf(o *Object) map[string]any {
	into := map[string]any{}
	if o != nil {
		leaves(o.Object, "", into)
	}
	return into
}

// own notes that manager wrote the fields in which o differs from have.
func (s *Server) own(path string, have, o *Object, manager string) {
	before, after := fieldsOf(have), fieldsOf(o)
	if s.managers[path] == nil {
		s.managers[path] = map[string]owners{}
	}
	for field, value := range after {
		if was, there := before[field]; !there || !same(was, value) {
			s.managers[path][field] = owners{manager + " (Update)": true}
		}
	}
}

// apply merges the fields of the body under the manager.
func (s *Server) apply(r request, body []byte, manager string, force bool) (*Object, error) {
	o, err := decode(r, body)
	if err != nil {
		return nil, err
	}
	if manager == "" {
		return nil, apierrors.NewBadRequest("PatchOptions.meta.k8s.io is invalid: fieldManager: Required value")
	}
	if err := s.housed(r); err != nil {
		return nil, err
	}
	have := s.objects[r.path]
	if v := o.GetResourceVersion(); v != "" && (have == nil || v != have.GetResourceVersion()) {
		return nil, conflict(r)
	}
	wanted := fieldsOf(o)
	if s.managers[r.path] == nil {
		s.managers[r.path] = map[string]owners{}
	}
	managed := s.managers[r.path]
	current := fieldsOf(have)
	if taken := conflicts(managed, current, wanted, manager); len(taken) > 0 && !force {
		return nil, fieldConflict(taken)
	}
	next := &Object{Object: map[string]any{}}
	if have != nil {
		next = have.DeepCopy()
	}
	if have != nil && !same(fixed(have), fixed(o)) {
		return nil, apierrors.NewInvalid(have.GroupVersionKind().GroupKind(), r.name, nil)
	}
	for _, field := range slices.Sorted(maps.Keys(managed)) {
		if _, still := wanted[field]; !still && managed[field][manager] {
			delete(managed[field], manager)
			if len(managed[field]) == 0 {
				delete(managed, field)
				unset(next.Object, strings.Split(field, "\x00")[1:])
			}
		}
	}
	for field, value := range wanted {
		if managed[field] == nil || force || !same(current[field], value) {
			managed[field] = owners{}
		}
		managed[field][manager] = true
		set(next.Object, strings.Split(field, "\x00")[1:], value)
	}
	next.SetAPIVersion(o.GetAPIVersion())
	next.SetKind(o.GetKind())
	next.SetName(r.name)
	next.SetNamespace(r.namespace)
	if have == nil {
		s.finalize(r, next)
		s.store(r.path, next)
		return next, nil
	}
	if same(have.Object, next.Object) {
		return have, nil
	}
	s.replace(r.path, have, next)
	return next, nil
}

// fixed returns the immutable part of the object.
func fixed(o *Object) any {
	spec, _ := o.Object["spec"].(map[string]any)
	switch o.GetKind() {
	case "Job":
		return []any{spec["template"], spec["completions"]}
	case "Pod":
		return spec
	}
	return nil
}

// conflicts lists the fields that the manager wants to change but others manage.
func conflicts(managed map[string]owners, current, wanted map[string]any, manager string) []metav1.StatusCause {
	var taken []metav1.StatusCause
	for _, field := range slices.Sorted(maps.Keys(wanted)) {
		if same(current[field], wanted[field]) {
			continue
		}
		for other := range managed[field] {
			if other != manager {
				taken = append(taken, metav1.StatusCause{
					Type: metav1.CauseTypeFieldManagerConflict, Message: fmt.Sprintf("conflict with %q", other),
					Field: "." + strings.ReplaceAll(field, "\x00", "."),
				})
			}
		}
	}
	return taken
}

// fieldConflict words it as an API server does: one conflict in one line, several in a list for each manager.
func fieldConflict(taken []metav1.StatusCause) error {
	if len(taken) == 1 {
		return apierrors.NewApplyConflict(taken, "Apply failed with 1 conflict: "+taken[0].Message+": "+taken[0].Field)
	}
	fields := map[string]string{}
	for _, c := range taken {
		fields[c.Message] += "\n- " + c.Field
	}
	text := fmt.Sprintf("Apply failed with %d conflicts:", len(taken))
	for _, by := range slices.Sorted(maps.Keys(fields)) {
		text += strings.Replace(by, "conflict", " conflicts", 1) + ":" + fields[by]
	}
	return apierrors.NewApplyConflict(taken, text)
}

func set(in map[string]any, path []string, value any) {
	for _, name := range path[:len(path)-1] {
		nested, ok := in[name].(map[string]any)
		if !ok {
			nested = map[string]any{}
			in[name] = nested
		}
		in = nested
	}
	in[path[len(path)-1]] = plain(value)
}

func unset(in map[string]any, path []string) {
	for _, name := range path[:len(path)-1] {
		nested, ok := in[name].(map[string]any)
		if !ok {
			return
		}
		in = nested
	}
	delete(in, path[len(path)-1])
}

// plain is a copy that shares nothing.
func plain(v any) any {
	o := Object{}
	text, _ := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "x", "v": v})
	_ = o.UnmarshalJSON(text)
	return o.Object["v"]
}
