package kubeapi

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// written is a line of a container.
type written struct {
	container, line string
	at              time.Time
}

// Write makes a container of the pod at the path write a line.
func (s *Server) Write(pod, container, line string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.logs == nil {
		s.logs = map[string][]written{}
	}
	s.logs[pod] = append(s.logs[pod], written{container, line, at})
}

// log answers the log of a container, with the instants of its lines, as read and get of the resource pods/log.
func (s *Server) log(w http.ResponseWriter, q url.Values, pod string) {
	o := s.objects[pod]
	if o == nil {
		answer(w, nil, apierrors.NewNotFound(parsed(pod).resource.GroupResource(), parsed(pod).name))
		return
	}
	name := q.Get("container")
	containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "containers")
	known := slices.ContainsFunc(containers, func(c any) bool { return c.(map[string]any)["name"] == name })
	if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); !known || phase == "Pending" {
		answer(w, nil, apierrors.NewBadRequest(fmt.Sprintf("container %q in pod %q is not valid, or is waiting to start", name, o.GetName())))
		return
	}
	var lines []string
	since, _ := time.Parse(time.RFC3339, q.Get("sinceTime"))
	for _, l := range s.logs[pod] {
		if l.container == name && !l.at.Before(since) {
			line := l.line + "\n"
			if q.Get("timestamps") == "true" {
				line = l.at.UTC().Format(time.RFC3339Nano) + " " + line
			}
			lines = append(lines, line)
		}
	}
	if n, err := strconv.Atoi(q.Get("tailLines")); err == nil {
		lines = lines[max(len(lines)-n, 0):]
	}
	_, _ = io.WriteString(w, strings.Join(lines, ""))
}

func parsed(path string) request {
	r, _ := parse(path)
	return r
}
