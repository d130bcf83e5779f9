// Package nuvla is a double of Nuvla's server, for tests and for the laptop: it is built from what is documented of the
// REST API and read in its source (shared/docs/contracts.md has what was not), and nobody has compared it with a real one
// yet. It has sessions with a cookie that ends, modules with versions, deployments with their states, jobs that take their
// time, credentials, NuvlaEdges that may be offline, CIMI filters and pages, and fails on demand.
package nuvla

import (
	"compress/gzip"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// The API key that may sign in.
const (
	Key    = "credential/6f2e0000-0000-4000-8000-000000000001"
	Secret = "a secret of the double"
	cookie = "com.com.sixsq.nuvla.cookie" // the repetition is real
)

// Server is the double.
type Server struct {
	URL string

	mu        sync.Mutex
	resources map[string]resource
	order     []string             // ids, oldest first
	sessions  map[string]time.Time // end, by the value of the cookie
	life      time.Duration
	edges     map[string]*edge // by id of the nuvlabox
	faults    []Fault
	calls     []string
	tick      int // of the clock of created and updated
}

// Fault is how the server answers a call once, or always until it is taken back.
type Fault struct {
	Call   string // prefix of "METHOD /path"; empty = any but signing in
	Status int    // 0 = the connection breaks
	Header http.Header
	After  bool // the call takes effect, and only its answer is lost
	Times  int  // how often; 0 = until Heal
	Shape  bool // as a gateway in front answers
	Pass   bool // it passes after all: to count calls before a fault
}

// resource is a JSON object.
type resource map[string]any

func (r resource) text(name string) string { s, _ := r[name].(string); return s }

// all returns the values at the path, those of lists one by one.
func (r resource) all(path []string) []any {
	var walk func(v any, path []string) []any
	walk = func(v any, path []string) (found []any) {
		switch v := v.(type) {
		case nil:
		case []any:
			for _, one := range v {
				found = append(found, walk(one, path)...)
			}
		case map[string]any:
			if len(path) > 0 {
				return walk(v[path[0]], path[1:])
			}
		case resource:
			return walk(map[string]any(v), path)
		default:
			if len(path) == 0 {
				return []any{v}
			}
		}
		return found
	}
	return walk(r, path)
}

// Start runs a server until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s := New()
	listener := httptest.NewServer(s)
	t.Cleanup(listener.Close)
	s.URL = listener.URL
	return s
}

// StartTLS is Start with TLS, by a certificate that nobody trusts.
func StartTLS(t testing.TB) *Server {
	t.Helper()
	s := New()
	listener := httptest.NewTLSServer(s)
	t.Cleanup(listener.Close)
	s.URL = listener.URL
	return s
}

// New returns a server that listens nowhere yet: it is a handler.
func New() *Server {
	return &Server{
		resources: map[string]resource{}, sessions: map[string]time.Time{}, edges: map[string]*edge{}, life: 7 * 24 * time.Hour,
	}
}

// Sessions sets how long a session lasts from now on, and ends all there are.
func (s *Server) Sessions(life time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.life = life
	clear(s.sessions)
}

// Fail adds a fault.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, f)
}

// Heal takes all faults back.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// Calls lists "METHOD /path" of all calls so far.
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Of lists copies of the resources of a type, oldest first.
func (s *Server) Of(kind string) (all []map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.order {
		if r := s.resources[id]; r != nil && strings.HasPrefix(id, kind+"/") {
			all = append(all, clone(r))
		}
	}
	return all
}

// Change alters a resource behind everybody's back.
func (s *Server) Change(id string, alter func(map[string]any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	alter(s.resources[id])
}

func clone(r resource) resource {
	text, _ := json.Marshal(r)
	var out resource
	_ = json.Unmarshal(text, &out)
	return out
}

// now is the clock of the server: each resource has a time of its own.
func (s *Server) now() string {
	s.tick++
	return time.Now().UTC().Truncate(time.Second).Add(time.Duration(s.tick%1000) * time.Millisecond).Format("2006-01-02T15:04:05.000Z")
}

// put stores a new resource.
func (s *Server) put(kind string, r resource) string {
	id := r.text("id")
	if id == "" {
		id = kind + "/" + uuid.NewString()
	}
	r["id"], r["resource-type"] = id, kind
	r["created"] = s.now()
	r["updated"] = r["created"]
	r["acl"] = map[string]any{"owners": []any{"group/nuvla-admin"}}
	if s.resources[id] == nil {
		s.order = append(s.order, id)
	}
	s.resources[id] = clone(r)
	return id
}

// refusal is an answer that says no.
type refusal struct {
	status  int
	message string
}

func (r refusal) Error() string { return r.message }

func no(status int, format string, args ...any) error {
	return refusal{status, fmt.Sprintf(format, args...)}
}

// kinds are the types that the double has.
var kinds = []string{
	"session", "module", "deployment", "deployment-parameter", "job", "credential", "infrastructure-service",
	"infrastructure-service-group", "nuvlabox", "nuvlabox-status",
}

// ServeHTTP answers a call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	call := r.Method + " " + r.URL.Path
	s.calls = append(s.calls, call)
	fault := s.fault(call)
	if fault != nil && !fault.After {
		s.mu.Unlock()
		fault.answer(w)
		return
	}
	status, body, err := s.serve(w, r)
	if err != nil {
		var refused refusal
		refused, ok := err.(refusal) //nolint:errorlint // it is made here
		if !ok {
			refused = refusal{http.StatusInternalServerError, "unexpected error occurred: " + err.Error()}
		}
		status, body = refused.status, map[string]any{"status": refused.status, "message": refused.message}
	}
	text, _ := json.Marshal(body)
	s.mu.Unlock()
	if fault != nil {
		fault.answer(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

func (s *Server) fault(call string) *Fault {
	for i, f := range s.faults {
		if f.Call == "" && call == "POST /api/session" || !strings.HasPrefix(call, f.Call) {
			continue
		}
		if f.Times == 1 {
			s.faults = slices.Delete(slices.Clone(s.faults), i, i+1)
		} else if f.Times > 1 {
			s.faults[i].Times--
		}
		if f.Pass {
			return nil
		}
		return &f
	}
	return nil
}

func (f *Fault) answer(w http.ResponseWriter) {
	if f.Status == 0 {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), f.Header)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Status)
	said := any(map[string]any{"status": f.Status, "message": "unexpected error occurred: on demand"})
	if f.Shape {
		said = map[string]any{"error": map[string]any{"code": f.Status, "reason": "on demand"}}
	}
	_ = json.NewEncoder(w).Encode(said)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) (int, any, error) {
	path, ok := strings.CutPrefix(r.URL.Path, "/api/")
	if !ok {
		return 0, nil, no(http.StatusNotFound, "unknown resource: %s", r.URL.Path)
	}
	var body map[string]any
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		if r.Header.Get("Content-Encoding") == "gzip" {
			plain, err := gzip.NewReader(r.Body)
			if err != nil {
				return 0, nil, no(http.StatusBadRequest, "invalid request: %v", err)
			}
			r.Body = io.NopCloser(plain)
		}
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
			if err := r.ParseForm(); err != nil {
				return 0, nil, no(http.StatusBadRequest, "invalid request: %v", err)
			}
		} else if err := json.NewDecoder(r.Body).Decode(&body); err != nil && r.ContentLength != 0 {
			return 0, nil, no(http.StatusBadRequest, "invalid request: %v", err)
		}
	}
	kind, rest, single := strings.Cut(path, "/")
	switch {
	case path == "cloud-entry-point" && r.Method == http.MethodGet:
		return http.StatusOK, entryPoint(r), nil
	case path == "session" && r.Method == http.MethodPost:
		return s.signIn(w, body)
	case !slices.Contains(kinds, kind):
		return 0, nil, no(http.StatusNotFound, "unknown resource: %s", kind)
	case !s.knows(r):
		return 0, nil, no(http.StatusForbidden, "credentials required")
	case !single && (r.Method == http.MethodGet || r.Method == http.MethodPut):
		return s.search(r, kind)
	case !single && r.Method == http.MethodPost:
		return s.create(w, kind, body)
	case single:
		uuid, action, acts := strings.Cut(rest, "/")
		return s.single(w, r.Method, kind+"/"+uuid, action, acts, body, r.URL.Query().Get("select"))
	}
	return 0, nil, no(http.StatusMethodNotAllowed, "invalid method (%s) for %s", strings.ToLower(r.Method), r.URL.Path)
}

func entryPoint(r *http.Request) any {
	collections := map[string]any{}
	for _, kind := range kinds {
		collections[kind+"s"] = map[string]any{"href": kind}
	}
	return map[string]any{
		"id": "cloud-entry-point", "resource-type": "cloud-entry-point", "base-uri": "http://" + r.Host + "/api/",
		"collections": collections,
	}
}

func (s *Server) signIn(w http.ResponseWriter, body map[string]any) (int, any, error) {
	template, _ := body["template"].(map[string]any)
	key, _ := template["key"].(string)
	if key != "" && !strings.Contains(key, "/") {
		key = "credential/" + key
	}
	if template["href"] != "session-template/api-key" || key != Key || template["secret"] != Secret {
		return 0, nil, no(http.StatusForbidden, "invalid credentials for '%s'", key)
	}
	value, end := rand.Text(), time.Now().Add(s.life)
	s.sessions[value] = end
	http.SetCookie(w, &http.Cookie{Name: cookie, Value: value, Path: "/", Expires: end, HttpOnly: true, Secure: true})
	id := s.put("session", resource{"method": "api-key", "expiry": end.UTC().Format(time.RFC3339)})
	return made(w, id)
}

func made(w http.ResponseWriter, id string) (int, any, error) {
	w.Header().Set("Location", id)
	return http.StatusCreated, map[string]any{"status": 201, "message": id + " created", "resource-id": id}, nil
}

// knows reports whether the call comes with a session that has not ended.
func (s *Server) knows(r *http.Request) bool {
	for _, c := range r.Cookies() {
		if end, ok := s.sessions[c.Value]; ok && c.Name == cookie && time.Now().Before(end) {
			return true
		}
	}
	return false
}

const defaultPage = 20

func (s *Server) search(r *http.Request, kind string) (int, any, error) {
	q := r.URL.Query()
	if r.Method == http.MethodPut {
		q = r.Form
	}
	found := []resource{}
	matches := func(resource) bool { return true }
	if text := q.Get("filter"); text != "" {
		var err error
		if matches, err = parseFilter(text); err != nil {
			return 0, nil, no(http.StatusBadRequest, "%v", err)
		}
	}
	for _, id := range s.order {
		if one := s.resources[id]; one != nil && strings.HasPrefix(id, kind+"/") && matches(one) {
			found = append(found, one)
		}
	}
	for _, by := range slices.Backward(q["orderby"]) {
		name, way, _ := strings.Cut(by, ":")
		slices.SortStableFunc(found, func(a, b resource) int {
			c := strings.Compare(first(a, name), first(b, name))
			if way == "desc" {
				return -c
			}
			return c
		})
	}
	count := len(found)
	from, to := 1, defaultPage
	if n, err := strconv.Atoi(q.Get("first")); err == nil {
		from = max(1, n)
	}
	if n, err := strconv.Atoi(q.Get("last")); err == nil {
		to = n
	}
	if to > 10_000 {
		return 0, nil, no(http.StatusBadRequest, "result window is too large")
	}
	found = found[min(from-1, count):max(min(from-1, count), min(to, count))]
	resources := make([]any, 0, len(found))
	for _, one := range found {
		resources = append(resources, s.shown(one, q.Get("select")))
	}
	return http.StatusOK, map[string]any{
		"id": kind, "resource-type": kind + "-collection", "count": count, "acl": map[string]any{},
		"resources": resources, "operations": []any{},
	}, nil
}

func first(r resource, name string) string {
	if all := r.all(strings.Split(name, "/")); len(all) > 0 {
		return fmt.Sprint(all[0])
	}
	return ""
}

// shown is a resource as an answer has it: with its operations, or the selected attributes only.
func (s *Server) shown(r resource, selected string) resource {
	out := clone(r)
	if selected != "" {
		out = resource{}
		for _, name := range append(strings.Split(selected, ","), "id", "acl", "resource-type", "state") {
			graft(out, r, strings.Split(name, "/"))
		}
	}
	delete(out, "_contents")
	operations := []any{map[string]any{"rel": "edit", "href": r["id"]}}
	if !strings.HasPrefix(r.text("id"), "deployment/") || allowed["delete"](r.text("state")) {
		operations = append(operations, map[string]any{"rel": "delete", "href": r["id"]})
	}
	if strings.HasPrefix(r.text("id"), "deployment/") {
		for _, action := range slices.Sorted(maps.Keys(allowed)) {
			if action != "delete" && allowed[action](r.text("state")) {
				operations = append(operations, map[string]any{"rel": action, "href": r.text("id") + "/" + action})
			}
		}
	}
	out["operations"] = operations
	return out
}

// graft copies the attribute at the path.
func graft(to, from map[string]any, path []string) {
	value, ok := from[path[0]]
	switch inner, isMap := value.(map[string]any); {
	case !ok:
	case len(path) == 1:
		to[path[0]] = value
	case isMap:
		next, _ := to[path[0]].(map[string]any)
		if next == nil {
			next = map[string]any{}
		}
		graft(next, inner, path[1:])
		to[path[0]] = next
	}
}

func (s *Server) create(w http.ResponseWriter, kind string, body map[string]any) (int, any, error) {
	var id string
	var err error
	switch kind {
	case "module":
		id, err = s.newModule(body)
	case "deployment":
		id, err = s.newDeployment(body)
	case "infrastructure-service", "credential", "infrastructure-service-group", "nuvlabox", "deployment-parameter":
		id = s.put(kind, body)
	default:
		err = no(http.StatusMethodNotAllowed, "invalid method (post) for %s", kind)
	}
	if err != nil {
		return 0, nil, err
	}
	return made(w, id)
}

func (s *Server) single(
	w http.ResponseWriter, method, id, action string, acts bool, body map[string]any, selected string,
) (int, any, error) {
	r := s.resources[id]
	if version := versioned.FindStringSubmatch(id); r == nil && version != nil {
		r = s.version(version[1], version[2])
	}
	switch {
	case r == nil:
		return 0, nil, no(http.StatusNotFound, "%s not found", id)
	case acts && method == http.MethodPost:
		return s.act(w, r, action, body)
	case acts:
		return 0, nil, no(http.StatusNotFound, "undefined action for %s: %s", id, action)
	case method == http.MethodGet:
		return http.StatusOK, s.shown(r, selected), nil
	case method == http.MethodPut:
		if err := s.edit(r, body, selected); err != nil {
			return 0, nil, err
		}
		return http.StatusOK, s.shown(r, ""), nil
	case method == http.MethodDelete:
		if strings.HasPrefix(id, "deployment/") && !allowed["delete"](r.text("state")) {
			return 0, nil, notIn("delete", r)
		}
		s.remove(id)
		return http.StatusOK, map[string]any{"status": 200, "message": id + " deleted", "resource-id": id}, nil
	}
	return 0, nil, no(http.StatusMethodNotAllowed, "invalid method (%s) for %s", strings.ToLower(method), id)
}

func (s *Server) remove(id string) {
	delete(s.resources, id)
	if strings.HasPrefix(id, "deployment/") {
		for other, r := range s.resources {
			if r.text("parent") == id && strings.HasPrefix(other, "deployment-parameter/") {
				delete(s.resources, other)
			}
		}
	}
	s.order = slices.DeleteFunc(s.order, func(id string) bool { return s.resources[id] == nil })
}

var (
	versioned = regexp.MustCompile(`^(module/[0-9a-f-]{36})_(\d+)$`)
	segment   = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*$`)
)
