// Package watch is the laptop's double of Knative's ApiServerSources, and of as much of a Kubernetes API as they and their
// functions need: objects of any kind are put, read, listed and removed at the paths that a cluster has for them. Each
// change is an event to whichever sources watch that kind.
//
// A change counts when its events have been taken: a put that a function could not take is answered with 503 and leaves
// the object as it was, so nothing has to be sent again after a restart. Objects are kept in one file.
package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	sourcesv1 "knative.dev/eventing/pkg/apis/sources/v1"
	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/infra/runner/manifests"
	"github.com/littoral-project/littoral/infra/runner/mesh"
	"github.com/littoral-project/littoral/shared/durable"
	"github.com/littoral-project/littoral/shared/problem"
)

// Options of a Store.
type Options struct {
	File   string // all objects; made if missing
	Set    *manifests.Set
	Client *http.Client // reaches the sinks
	Log    *slog.Logger
}

// Store holds objects and tells sources of their changes. Safe for concurrent use.
type Store struct {
	options Options
	sources []source

	changing sync.Mutex // one change at a time, so that events come in the order of the changes

	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured // by path
	version int64
}

// source is what one ApiServerSource watches for, and where it sends to.
type source struct {
	apiVersion, kind string
	selector         labels.Selector
	namespace        string // "" = all
	sink             string
}

// Open reads the file and the sources.
func Open(o Options) (*Store, error) {
	s := &Store{options: o, objects: map[string]*unstructured.Unstructured{}}
	for _, key := range manifests.Sorted(o.Set.APIServerSources) {
		if err := s.add(key, o.Set.APIServerSources[key]); err != nil {
			return nil, fmt.Errorf("ApiServerSource %s: %w", key.Name, err)
		}
	}
	text, err := os.ReadFile(o.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return nil, err
	}
	var kept map[string]map[string]any
	if err := json.Unmarshal(text, &kept); err != nil {
		return nil, fmt.Errorf("%s: %w", o.File, err)
	}
	for path, content := range kept {
		object := &unstructured.Unstructured{Object: content}
		s.objects[path] = object
		if v, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64); err == nil {
			s.version = max(s.version, v)
		}
	}
	return s, nil
}

func (s *Store) add(key types.NamespacedName, from *sourcesv1.ApiServerSource) error {
	if from.Spec.EventMode != sourcesv1.ResourceMode {
		return fmt.Errorf("mode %s: the laptop host sends whole objects only (mode: Resource)", from.Spec.EventMode)
	}
	sink, err := mesh.Resolve(&from.Spec.Sink)
	if err != nil {
		return err
	}
	for _, r := range from.Spec.Resources {
		one := source{apiVersion: r.APIVersion, kind: r.Kind, selector: labels.Everything(), sink: sink.String()}
		if from.Spec.NamespaceSelector == nil { // namespaces have no labels here: a selector takes all
			one.namespace = key.Namespace
		}
		if r.LabelSelector != nil {
			if one.selector, err = metav1.LabelSelectorAsSelector(r.LabelSelector); err != nil {
				return err
			}
		}
		s.sources = append(s.sources, one)
	}
	return nil
}

func (s source) wants(o *unstructured.Unstructured) bool {
	return o.GetAPIVersion() == s.apiVersion && o.GetKind() == s.kind && s.selector.Matches(labels.Set(o.GetLabels())) &&
		(s.namespace == "" || o.GetNamespace() == s.namespace)
}

// Handler serves /apis/{group}/{version}/[namespaces/{namespace}/]{plural}[/{name}], and /api/v1/... likewise: GET, PUT and
// DELETE of an object, and GET of a list. Whoever mounts it checks the caller.
func (s *Store) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := s.serve(r)
		if err != nil {
			problem.Write(w, err, "")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	})
}

func (s *Store) serve(r *http.Request) (any, error) {
	if r.Method != http.MethodGet {
		s.changing.Lock()
		defer s.changing.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimSuffix(r.URL.Path, "/")
	named, err := names(path)
	if err != nil {
		return nil, err
	}
	object := s.objects[path]
	switch {
	case r.Method == http.MethodPut && named:
		return s.put(r, path, object)
	case !named && r.Method == http.MethodGet:
		return s.list(path), nil
	case r.Method != http.MethodGet && r.Method != http.MethodDelete:
		return nil, problem.New(problem.MethodNotAllowed, "objects take GET, PUT and DELETE")
	case object == nil:
		return nil, problem.New(problem.NotFound, "there is no object %s", problem.Brief(path, 200))
	case r.Method == http.MethodDelete:
		return object.Object, s.change(r.Context(), path, object, nil, "delete")
	}
	return object.Object, nil
}

// names reports whether a path is that of an object, and not of a list.
func names(path string) (bool, error) {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	prefix := map[string]int{"api": 2, "apis": 3}[parts[0]]
	if prefix == 0 || len(parts) <= prefix {
		return false, problem.New(problem.NotFound, "objects are at /apis/{group}/{version}/namespaces/{namespace}/{plural}/{name}")
	}
	rest := parts[prefix:]
	if rest[0] == "namespaces" && len(rest) > 2 {
		rest = rest[2:]
	}
	if len(rest) > 2 || slices.Contains(parts, "") {
		return false, problem.New(problem.NotFound, "there is nothing at %s", problem.Brief(path, 200))
	}
	return len(rest) == 2, nil
}

const mostBody = 1 << 20

func (s *Store) put(r *http.Request, path string, before *unstructured.Unstructured) (any, error) {
	text, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, mostBody))
	if err != nil {
		return nil, problem.Wrap(problem.TooLarge, err, "an object has at most %d bytes", mostBody)
	}
	after := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &after.Object); err != nil {
		return nil, problem.Wrap(problem.Malformed, err, "the body is neither JSON nor YAML")
	}
	parts := strings.Split(path, "/")
	if after.GetKind() == "" || !strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/"), after.GetAPIVersion()+"/") {
		return nil, problem.New(problem.Invalid, "apiVersion %q and kind %q do not fit the path", after.GetAPIVersion(), after.GetKind())
	}
	after.SetName(parts[len(parts)-1])
	if i := slices.Index(parts, "namespaces"); i >= 0 && i+2 < len(parts)-1 {
		after.SetNamespace(parts[i+1])
	}
	s.version++
	after.SetResourceVersion(strconv.FormatInt(s.version, 10))
	verb := "update"
	if before == nil {
		verb = "add"
		after.SetUID(types.UID(uuid.NewString()))
		after.SetCreationTimestamp(metav1.NewTime(time.Now().UTC()))
	} else {
		after.SetUID(before.GetUID())
		after.SetCreationTimestamp(before.GetCreationTimestamp())
	}
	return after.Object, s.change(r.Context(), path, after, after, verb)
}

func (s *Store) list(path string) any {
	items := []any{}
	for _, at := range slices.Sorted(maps.Keys(s.objects)) {
		parent := at[:strings.LastIndex(at, "/")]
		if parent == path || everywhere(parent) == path {
			items = append(items, s.objects[at].Object)
		}
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "List", "items": items,
		"metadata": map[string]any{"resourceVersion": strconv.FormatInt(s.version, 10)},
	}
}

// everywhere is the path of the list of all namespaces.
func everywhere(list string) string {
	before, after, namespaced := strings.Cut(list, "/namespaces/")
	_, plural, more := strings.Cut(after, "/")
	if !namespaced || !more {
		return list
	}
	return before + "/" + plural
}

// change sends the events of a change and stores it. Readers see it first: a function asks for what its event is about.
func (s *Store) change(ctx context.Context, path string, about, after *unstructured.Unstructured, verb string) error {
	before := s.objects[path]
	s.set(path, after)
	for _, one := range s.sources {
		if !one.wants(about) {
			continue
		}
		s.mu.Unlock() // its function reads what has changed
		err := s.send(ctx, one.sink, path, about, verb)
		s.mu.Lock()
		if err != nil {
			s.set(path, before)
			s.options.Log.WarnContext(ctx, "a change was not taken", "object", path, "error", err)
			return problem.Wrap(problem.Unavailable, err, "a function that watches for it could not take the change; try again")
		}
	}
	all := make(map[string]any, len(s.objects))
	for at, object := range s.objects {
		all[at] = object.Object
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return durable.WriteFile(s.options.File, text, 0o600)
}

func (s *Store) set(path string, object *unstructured.Unstructured) {
	if object == nil {
		delete(s.objects, path)
		return
	}
	s.objects[path] = object
}

// send makes the event as Knative's adapter does.
func (s *Store) send(ctx context.Context, sink, path string, o *unstructured.Unstructured, verb string) error {
	e := cloudevents.New()
	e.SetID(uuid.NewString())
	e.SetType("dev.knative.apiserver.resource." + verb)
	e.SetSource("http://kubernetes.default.svc.cluster.local")
	e.SetSubject(path)
	e.SetTime(time.Now().UTC())
	e.SetExtension("apiversion", o.GetAPIVersion())
	e.SetExtension("kind", o.GetKind())
	e.SetExtension("name", o.GetName())
	e.SetExtension("namespace", o.GetNamespace())
	if err := e.SetData(cloudevents.ApplicationJSON, o.Object); err != nil {
		return err
	}
	r, err := cehttp.NewHTTPRequestFromEvent(ctx, sink, e)
	if err != nil {
		return err
	}
	resp, err := s.options.Client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the sink answered %s: %s", resp.Status, bytes.TrimSpace(answer))
	}
	return nil
}
