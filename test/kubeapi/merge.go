package kubeapi

import (
	"encoding/json"
	"strings"
)

// merge changes an object by a merge patch (RFC 7386): its status alone by its subresource, and all but that otherwise. An object
// that was deleted goes with its last finalizer.
func (s *Server) merge(r request, body []byte) (*Object, error) {
	path, status := strings.CutSuffix(r.path, "/status")
	if status {
		r, _ = parse(path)
	}
	have, err := s.find(r)
	if err != nil {
		return nil, err
	}
	var patch map[string]any
	if err := json.Unmarshal(body, &patch); err != nil {
		return nil, err
	}
	next := have.DeepCopy()
	next.Object, _ = merged(next.Object, patch).(map[string]any)
	if status {
		said := next.Object["status"]
		next = have.DeepCopy()
		next.Object["status"] = said
	} else {
		delete(next.Object, "status")
		if status, ok := have.Object["status"]; ok {
			next.Object["status"] = status
		}
		if !same(have.Object["spec"], next.Object["spec"]) {
			next.SetGeneration(have.GetGeneration() + 1)
		}
	}
	s.store(r.path, next)
	if next.GetDeletionTimestamp() != nil && len(next.GetFinalizers()) == 0 {
		s.forget(r.path)
	}
	return next, nil
}

func merged(have, patch any) any {
	fields, is := patch.(map[string]any)
	if !is {
		return patch
	}
	into, is := have.(map[string]any)
	if !is {
		into = map[string]any{}
	}
	for key, value := range fields {
		if value == nil {
			delete(into, key)
			continue
		}
		into[key] = merged(into[key], value)
	}
	return into
}
