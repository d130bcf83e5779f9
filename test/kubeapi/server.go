// Package kubeapi is a double of a Kubernetes API server for tests that must run on any machine, built from the
// documented behaviour of the API: objects of any kind by path, resource versions, generations, preconditions,
// finalizers, terminating namespaces, label selectors, names as field selectors, lists by pages that expire, metadata-only lists, unknown kinds,
// server-side apply with field managers and conflicts, quotas by refusal. Work plays the controllers of one cluster,
// Agent the agent of Open Cluster Management between two.
//
// A real server may refuse what this double accepts. The same conformance suite also runs against real servers if
// LITTORAL_TEST_KUBECONFIG names some (package shared/orchestrator/conformance).
package kubeapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Object is short for what tests write most.
type Object = unstructured.Unstructured

// Server is one API server.
type Server struct {
	URL string

	mu       sync.Mutex
	objects  map[string]*Object           // by path
	managers map[string]map[string]owners // by path, then by field
	kinds    []metav1.APIResource         // beyond Kubernetes' own
	version  int
	refuse   func(verb, path string) error
	deny     error
	away     bool
	calls    []string
	logs     map[string][]written // by the path of a pod
	used     map[string]bool      // rights
	page     int                  // objects of a list at most; 0 = as many as are asked for
	history  int                  // how often it was compacted
}

// Start runs a server until the test ends, with the namespaces and nodes.
func Start(t testing.TB, namespaces, nodes []string) *Server {
	t.Helper()
	s := &Server{
		objects: map[string]*Object{}, managers: map[string]map[string]owners{}, used: map[string]bool{},
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	for _, name := range namespaces {
		s.Put(t, "/api/v1/namespaces/"+name, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+name+`"}}`)
	}
	for _, name := range nodes {
		s.Put(t, "/api/v1/nodes/"+name, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"`+name+`"}}`)
	}
	return s
}

// Config returns how to reach the server.
func (s *Server) Config() *rest.Config { return &rest.Config{Host: s.URL, QPS: -1} }

// Client returns a real dynamic client of the server.
func (s *Server) Client(t testing.TB) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(s.Config())
	require.NoError(t, err)
	return client
}

// Kubeconfig returns a kubeconfig of the server.
func (s *Server) Kubeconfig() string {
	return `{"apiVersion": "v1", "kind": "Config", "current-context": "double",
"contexts": [{"name": "double", "context": {"cluster": "double", "user": "double"}}],
"clusters": [{"name": "double", "cluster": {"server": "` + s.URL + `"}}],
"users": [{"name": "double", "user": {"token": "double"}}]}`
}

// KubeconfigFile writes a kubeconfig of the server to a file with the name, alone in its folder, and returns its path.
func (s *Server) KubeconfigFile(t testing.TB, name string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, []byte(s.Kubeconfig()), 0o600))
	return file
}

// Page limits lists to pages of n objects.
func (s *Server) Page(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.page = n
}

// Compact makes the server forget former versions: lists that are being read expire.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history++
}

// Define makes the server know a kind that is not Kubernetes' own.
func (s *Server) Define(group, version, kind, plural string, namespaced bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds = append(
		s.kinds,
		metav1.APIResource{Group: group, Version: version, Kind: kind, Name: plural, Namespaced: namespaced},
	)
}

// Refuse answers every write with the error of check, if it returns one.
func (s *Server) Refuse(check func(verb, path string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = check
}

// Deny answers every call with the error, for instance that of an expired credential; nil ends that.
func (s *Server) Deny(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deny = err
}

// Cut hangs up on every call, like a broken line; false ends that.
func (s *Server) Cut(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// Calls lists the writes so far as "VERB path".
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Put stores an object as it stands.
func (s *Server) Put(t testing.TB, path, text string) {
	t.Helper()
	o := &Object{}
	require.NoError(t, o.UnmarshalJSON([]byte(text)))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(path, o)
}

// Get returns a copy of the object at the path; nil when there is none.
func (s *Server) Get(path string) *Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[path]; o != nil {
		return o.DeepCopy()
	}
	return nil
}

// Paths lists the paths of objects that hold the text.
func (s *Server) Paths(holding string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []string
	for _, path := range slices.Sorted(maps.Keys(s.objects)) {
		if strings.Contains(path, holding) {
			found = append(found, path)
		}
	}
	return found
}

// Change alters the object at the path, as a controller would its status.
func (s *Server) Change(path string, alter func(*Object)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[path]; o != nil {
		alter(o)
		s.bump(o)
	}
}

// Forget takes the object away, as somebody else would.
func (s *Server) Forget(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(path)
}

func (s *Server) store(path string, o *Object) {
	encode(o)
	if o.GetUID() == "" {
		o.SetUID(types.UID(uuid.NewString()))
		o.SetCreationTimestamp(metav1.Now())
	}
	if o.GetGeneration() == 0 {
		o.SetGeneration(1)
	}
	s.bump(o)
	s.objects[path] = o
}

// encode moves stringData of a Secret into data, as an API server does. The manager who applied it still owns only
// stringData.
func encode(o *Object) {
	text, _, _ := unstructured.NestedStringMap(o.Object, "stringData")
	if o.GetKind() != "Secret" || len(text) == 0 {
		return
	}
	for key, value := range text {
		set(o.Object, []string{"data", key}, base64.StdEncoding.EncodeToString([]byte(value)))
	}
	delete(o.Object, "stringData")
}

func (s *Server) bump(o *Object) {
	s.version++
	o.SetResourceVersion(strconv.Itoa(s.version))
}

// request is a call taken apart.
type request struct {
	path       string // of the object or collection
	collection string
	namespace  string
	name       string
	resource   schema.GroupVersionResource
}

func parse(path string) (request, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	r := request{path: path}
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		r.resource.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		r.resource.Group, r.resource.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return r, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		r.namespace, parts = parts[1], parts[2:]
	}
	r.resource.Resource = parts[0]
	r.collection = path
	if len(parts) > 1 {
		r.name = parts[1]
		r.collection = strings.TrimSuffix(path, "/"+r.name)
	}
	return r, true
}

func (s *Server) ServeHTTP(w http.ResponseWriter, h *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.Close()
		}
		return
	}
	if s.deny != nil {
		answer(w, nil, s.deny)
		return
	}
	if pod, found := strings.CutSuffix(h.URL.Path, "/log"); found && strings.Contains(pod, "/pods/") {
		s.used["get pods/log"] = true
		s.log(w, h.URL.Query(), pod)
		return
	}
	r, ok := parse(h.URL.Path)
	if !ok {
		s.discover(w, h.URL.Path)
		return
	}
	if !s.knows(r) {
		http.NotFound(w, h) // like any unknown path
		return
	}
	body, err := io.ReadAll(h.Body)
	if err != nil {
		return
	}
	s.use(h.Method, r)
	if h.Method != http.MethodGet {
		s.calls = append(s.calls, h.Method+" "+h.URL.Path)
		if s.refuse != nil {
			if err := s.refuse(h.Method, h.URL.Path); err != nil {
				answer(w, nil, err)
				return
			}
		}
	}
	switch {
	case h.Method == http.MethodGet && r.name == "":
		s.list(w, h, r)
	case h.Method == http.MethodGet:
		o, err := s.find(r)
		answer(w, o, err)
	case h.Method == http.MethodPost:
		o, err := s.create(r, body, h.URL.Query().Get("fieldManager"), h.URL.Query().Get("dryRun") == metav1.DryRunAll)
		answer(w, o, err)
	case h.Method == http.MethodPut:
		o, err := s.update(r, body, h.URL.Query().Get("fieldManager"))
		answer(w, o, err)
	case h.Method == http.MethodPatch && h.Header.Get("Content-Type") == "application/apply-patch+yaml":
		o, err := s.apply(r, body, h.URL.Query().Get("fieldManager"), h.URL.Query().Get("force") == "true")
		answer(w, o, err)
	case h.Method == http.MethodPatch && h.Header.Get("Content-Type") == "application/merge-patch+json":
		o, err := s.merge(r, body)
		answer(w, o, err)
	case h.Method == http.MethodDelete:
		o, err := s.remove(r, body)
		answer(w, o, err)
	default:
		answer(w, nil, apierrors.NewMethodNotSupported(r.resource.GroupResource(), h.Method))
	}
}

// knows reports whether the kind exists with that scope.
func (s *Server) knows(r request) bool {
	return s.serves(r, r.namespace == "" && r.name == "")
}

// has reports whether the kind exists, whatever its scope.
func (s *Server) has(r request) bool { return s.serves(r, true) }

// serves is true for all groups of Kubernetes' own.
func (s *Server) serves(r request, everywhere bool) bool {
	of := r.resource
	if !strings.Contains(of.Group, ".") || strings.HasSuffix(of.Group, ".k8s.io") {
		return true
	}
	return slices.ContainsFunc(s.kinds, func(k metav1.APIResource) bool {
		return k.Group == of.Group && k.Version == of.Version && k.Name == of.Resource &&
			(everywhere || k.Namespaced == (r.namespace != ""))
	})
}

func answer(w http.ResponseWriter, o *Object, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		status := apierrors.NewInternalError(err).Status()
		if known, ok := err.(apierrors.APIStatus); ok { // made here
			status = known.Status()
		}
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		if status.Code == http.StatusTooManyRequests && status.Details != nil {
			w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
		}
		w.WriteHeader(int(status.Code))
		_ = json.NewEncoder(w).Encode(status)
		return
	}
	_ = json.NewEncoder(w).Encode(shown(o))
}

// shown is the object as it is answered, with a mark of managed fields.
func shown(o *Object) *Object {
	out := o.DeepCopy()
	out.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "double", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: o.GetAPIVersion(),
	}})
	return out
}

func (s *Server) discover(w http.ResponseWriter, path string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var list metav1.APIResourceList
	if len(parts) == 3 && parts[0] == "apis" {
		for _, k := range s.kinds {
			if k.Group == parts[1] && k.Version == parts[2] {
				list.APIResources = append(list.APIResources, k)
			}
		}
	}
	if len(list.APIResources) == 0 {
		http.NotFound(w, nil)
		return
	}
	list.GroupVersion = parts[1] + "/" + parts[2]
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list)
}

func (s *Server) find(r request) (*Object, error) {
	if o := s.objects[r.path]; o != nil {
		return o, nil
	}
	return nil, apierrors.NewNotFound(r.resource.GroupResource(), r.name)
}

func (s *Server) list(w http.ResponseWriter, h *http.Request, r request) {
	selector, of := h.URL.Query().Get("labelSelector"), "/"+r.resource.Resource+"/"
	base := "/api/" + r.resource.Version
	if r.resource.Group != "" {
		base = "/apis/" + r.resource.Group + "/" + r.resource.Version
	}
	if r.namespace != "" {
		base += "/namespaces/" + r.namespace
	}
	var paths []string
	for _, path := range slices.Sorted(maps.Keys(s.objects)) {
		rest, within := strings.CutPrefix(path, base)
		at := strings.LastIndex(path, "/")
		if !within || !strings.HasSuffix(path[:at+1], of) ||
			r.namespace == "" && strings.Count(rest, "/") != 2 && !strings.HasPrefix(rest, "/namespaces/") {
			continue
		}
		if key, value, set := strings.Cut(selector, "="); set && s.objects[path].GetLabels()[key] != value {
			continue
		}
		if name, set := strings.CutPrefix(h.URL.Query().Get("fieldSelector"), "metadata.name="); set && path[at+1:] != name {
			continue
		}
		paths = append(paths, path)
	}
	meta := map[string]any{"resourceVersion": strconv.Itoa(s.version)}
	history := strconv.Itoa(s.history) + ":"
	if from := h.URL.Query().Get("continue"); from != "" {
		of, last, _ := strings.Cut(from, ":")
		if of+":" != history {
			err := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result.")
			err.ErrStatus.Continue = history + last
			answer(w, nil, err)
			return
		}
		paths = slices.DeleteFunc(paths, func(path string) bool { return path <= last })
	}
	limit, _ := strconv.Atoi(h.URL.Query().Get("limit"))
	if s.page > 0 {
		limit = min(limit, s.page)
	}
	if limit > 0 && len(paths) > limit {
		paths = paths[:limit]
		meta["continue"] = history + paths[limit-1]
	}
	items := []any{}
	version, kind, bare := r.resource.GroupVersion().String(), "List", strings.Contains(h.Header.Get("Accept"), metadataOnly)
	if bare {
		version, kind = metav1.SchemeGroupVersion.Group+"/"+metav1.SchemeGroupVersion.Version, "PartialObjectMetadataList"
	}
	for _, path := range paths {
		o := shown(s.objects[path]).Object
		if bare {
			o = map[string]any{"apiVersion": version, "kind": "PartialObjectMetadata", "metadata": o["metadata"]}
		}
		items = append(items, o)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": version, "kind": kind, "metadata": meta, "items": items})
}

// metadataOnly in what a caller accepts asks for a list of objects with nothing but their metadata.
const metadataOnly = "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// housed checks that the object's namespace exists and is not terminating.
func (s *Server) housed(r request) error {
	if r.namespace == "" {
		return nil
	}
	ns := s.objects["/api/v1/namespaces/"+r.namespace]
	if ns == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, r.namespace)
	}
	if ns.GetDeletionTimestamp() != nil {
		err := apierrors.NewForbidden(r.resource.GroupResource(), r.name,
			fmt.Errorf("unable to create new content in namespace %s because it is being terminated", r.namespace))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: "NamespaceTerminating"}}
		return err
	}
	return nil
}

func decode(r request, body []byte) (*Object, error) {
	o := &Object{}
	if err := o.UnmarshalJSON(body); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if r.namespace != "" && o.GetNamespace() != "" && o.GetNamespace() != r.namespace {
		return nil, apierrors.NewBadRequest("the namespace of the object does not match that of the request")
	}
	if r.namespace != "" {
		o.SetNamespace(r.namespace)
	}
	o.SetManagedFields(nil)
	return o, admit(o)
}

// admit refuses what an API server refuses: a Secret with more than 1 MiB of data, and a binding that does not name the
// namespace of a ServiceAccount.
func admit(o *Object) error {
	if data, _, _ := unstructured.NestedStringMap(o.Object, "data"); o.GetKind() == "Secret" {
		size := 0
		for _, value := range data {
			size += base64.StdEncoding.DecodedLen(len(value))
		}
		if size > 1<<20 {
			long := field.TooLong(field.NewPath("data"), "", 1<<20)
			return apierrors.NewInvalid(o.GroupVersionKind().GroupKind(), o.GetName(), field.ErrorList{long})
		}
	}
	subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
	for i, entry := range subjects {
		subject, _ := entry.(map[string]any)
		if subject["kind"] == "ServiceAccount" && subject["namespace"] == nil {
			at := field.NewPath("subjects").Index(i).Child("namespace")
			return apierrors.NewInvalid(o.GroupVersionKind().GroupKind(), o.GetName(), field.ErrorList{field.Required(at, "")})
		}
	}
	return nil
}

func (s *Server) create(r request, body []byte, manager string, dry bool) (*Object, error) {
	o, err := decode(r, body)
	if err != nil {
		return nil, err
	}
	if o.GetName() == "" && o.GetGenerateName() != "" {
		o.SetName(o.GetGenerateName() + uuid.NewString()[:5])
	}
	r.name = o.GetName()
	r.path = r.collection + "/" + r.name
	if err := s.housed(r); err != nil {
		return nil, err
	}
	if s.objects[r.path] != nil {
		return nil, apierrors.NewAlreadyExists(r.resource.GroupResource(), r.name)
	}
	if dry {
		return o, nil
	}
	s.finalize(r, o)
	s.own(r.path, nil, o, manager)
	s.store(r.path, o)
	return o, nil
}

// finalize adds the finalizers that controllers would add, so that a deletion waits for Work or an Agent.
func (s *Server) finalize(r request, o *Object) {
	if r.resource.Resource == "manifestworks" {
		o.SetFinalizers([]string{workFinalizer})
	}
}

func (s *Server) update(r request, body []byte, manager string) (*Object, error) {
	o, err := decode(r, body)
	if err != nil {
		return nil, err
	}
	have, err := s.find(r)
	if err != nil {
		return nil, err
	}
	if v := o.GetResourceVersion(); v != "" && v != have.GetResourceVersion() {
		return nil, conflict(r)
	}
	s.own(r.path, have, o, manager)
	s.replace(r.path, have, o)
	return o, nil
}

func conflict(r request) error {
	return apierrors.NewConflict(r.resource.GroupResource(), r.name, fmt.Errorf("the object has been modified"))
}

// replace stores the new form of the object: its identity and status stay, and a change of its spec raises the
// generation.
func (s *Server) replace(path string, have, o *Object) {
	o.SetUID(have.GetUID())
	o.SetCreationTimestamp(have.GetCreationTimestamp())
	o.SetDeletionTimestamp(have.GetDeletionTimestamp())
	o.SetFinalizers(have.GetFinalizers())
	o.SetGeneration(have.GetGeneration())
	if status, ok := have.Object["status"]; ok {
		o.Object["status"] = status
	}
	if !same(have.Object["spec"], o.Object["spec"]) {
		o.SetGeneration(have.GetGeneration() + 1)
	}
	s.store(path, o)
}

func same(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func (s *Server) remove(r request, body []byte) (*Object, error) {
	have, err := s.find(r)
	if err != nil {
		return nil, err
	}
	var options metav1.DeleteOptions
	if len(body) > 0 {
		if err := json.Unmarshal(body, &options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if p := options.Preconditions; p != nil {
		if p.UID != nil && *p.UID != have.GetUID() ||
			p.ResourceVersion != nil && *p.ResourceVersion != have.GetResourceVersion() {
			return nil, conflict(r)
		}
	}
	_, bears := statusOf[have.GetKind()]
	foreground := options.PropagationPolicy != nil && *options.PropagationPolicy == metav1.DeletePropagationForeground &&
		bears
	if len(have.GetFinalizers()) > 0 || foreground || have.GetKind() == "Namespace" {
		if have.GetDeletionTimestamp() == nil {
			now := metav1.Now()
			have.SetDeletionTimestamp(&now)
			s.bump(have)
		}
		return have, nil
	}
	s.forget(r.path)
	return have, nil
}

func (s *Server) forget(path string) {
	s.version++ // a deletion is a change too
	delete(s.objects, path)
	delete(s.managers, path)
}
