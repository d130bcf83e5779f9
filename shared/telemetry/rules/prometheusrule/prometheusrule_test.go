package prometheusrule_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
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
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/telemetry/rules"
	"github.com/littoral-project/littoral/shared/telemetry/rules/prometheusrule"
	"github.com/littoral-project/littoral/shared/telemetry/rules/rulestest"
)

const (
	collection = "/apis/monitoring.coreos.com/v1/namespaces/monitoring/prometheusrules"
	pageSize   = 2 // so that lists have pages
)

// resource is what the objects are called in the API.
var resource = schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "prometheusrules"}

// apiServer speaks as much of the Kubernetes API as the store uses, in the types of apimachinery: server-side apply by
// one field manager, get, list with label selector and pages, delete with preconditions, Status objects for errors.
// What it cannot show is the operator's own validation.
type apiServer struct {
	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured
	refuse  *metav1.Status // answer to every apply, when set
}

func (a *apiServer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+collection, a.list)
	mux.HandleFunc("GET "+collection+"/{name}", func(w http.ResponseWriter, r *http.Request) {
		if o := a.find(w, r); o != nil {
			write(w, http.StatusOK, o)
		}
	})
	mux.HandleFunc("PATCH "+collection+"/{name}", a.apply)
	mux.HandleFunc("DELETE "+collection+"/{name}", func(w http.ResponseWriter, r *http.Request) {
		if o := a.find(w, r); o != nil {
			var options metav1.DeleteOptions
			if json.NewDecoder(r.Body).Decode(&options) != nil || options.Kind != "DeleteOptions" ||
				options.Preconditions == nil || *options.Preconditions.UID != o.GetUID() {
				write(w, http.StatusConflict, apierrors.NewConflict(resource.GroupResource(), o.GetName(), io.EOF).Status())
				return
			}
			delete(a.objects, o.GetName())
			write(w, http.StatusOK, metav1.Status{Status: metav1.StatusSuccess})
		}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		mux.ServeHTTP(w, r)
	})
}

func write(w http.ResponseWriter, status int, v any) {
	if s, ok := v.(metav1.Status); ok {
		s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		v = s
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (a *apiServer) find(w http.ResponseWriter, r *http.Request) *unstructured.Unstructured {
	o := a.objects[r.PathValue("name")]
	if o == nil {
		status := apierrors.NewNotFound(resource.GroupResource(), r.PathValue("name")).Status()
		write(w, http.StatusNotFound, status)
	}
	return o
}

func (a *apiServer) apply(w http.ResponseWriter, r *http.Request) {
	query, body := r.URL.Query(), map[string]any{}
	text, err := io.ReadAll(r.Body)
	switch {
	case a.refuse != nil:
		write(w, int(a.refuse.Code), *a.refuse)
		return
	case err != nil || json.Unmarshal(text, &body) != nil,
		r.Header.Get("Content-Type") != "application/apply-patch+yaml", query.Get("fieldManager") != "littoral",
		query.Get("force") != "true":
		http.Error(w, "this is no apply by littoral", http.StatusUnsupportedMediaType)
		return
	}
	o := &unstructured.Unstructured{Object: body}
	o.SetUID(types.UID(uuid.NewString()))
	o.SetNamespace("monitoring")
	a.objects[r.PathValue("name")] = o
	write(w, http.StatusOK, o)
}

func (a *apiServer) list(w http.ResponseWriter, r *http.Request) {
	key, value, _ := strings.Cut(r.URL.Query().Get("labelSelector"), "=")
	var names []string
	for _, name := range slices.Sorted(maps.Keys(a.objects)) {
		if a.objects[name].GetLabels()[key] == value {
			names = append(names, name)
		}
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	page := unstructured.UnstructuredList{}
	page.SetAPIVersion("monitoring.coreos.com/v1")
	page.SetKind("PrometheusRuleList")
	for _, name := range names[from:min(from+pageSize, len(names))] {
		page.Items = append(page.Items, *a.objects[name])
	}
	if from+pageSize < len(names) {
		page.SetContinue(strconv.Itoa(from + pageSize))
	}
	body, err := page.MarshalJSON()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

func open(t *testing.T) (*prometheusrule.Store, *apiServer, *httptest.Server) {
	t.Helper()
	a := &apiServer{objects: map[string]*unstructured.Unstructured{}}
	server := httptest.NewServer(a.handler())
	t.Cleanup(server.Close)
	where := prometheusrule.Server{URL: server.URL, HTTP: server.Client()}
	return prometheusrule.New(where, "monitoring", map[string]string{"release": "prometheus"}), a, server
}

func TestStore(t *testing.T) {
	t.Parallel()
	rulestest.Run(t, func(t *testing.T) rulestest.Place {
		s, a, server := open(t)
		return rulestest.Place{Store: s, Count: func() int { return len(a.objects) }, Stop: server.Close}
	})
}

func TestAnObjectIsWhatTheOperatorReads(t *testing.T) {
	t.Parallel()
	s, a, _ := open(t)
	require.NoError(t, s.Put(t.Context(), rulestest.Group("Shop CPU", "up > 1")))
	name := "littoral-" + rules.ID("Shop CPU")
	body, err := json.Marshal(a.objects[name])
	require.NoError(t, err)
	var have map[string]any
	require.NoError(t, json.Unmarshal(body, &have))
	delete(have["metadata"].(map[string]any), "uid")
	delete(have["metadata"].(map[string]any), "namespace")
	want := `{"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
		"metadata": {"name": "` + name + `", "labels": {"release": "prometheus", "app.kubernetes.io/managed-by": "littoral"}},
		"spec": {"groups": [{"name": "Shop CPU", "rules": [{"alert": "Shop CPU:rule-0", "expr": "up > 1", "for": "1m",
			"annotations": {"plm_id": "1", "plm_expr_value": "{{ $value }}"}}]}]}}`
	text, err := json.Marshal(have)
	require.NoError(t, err)
	require.JSONEq(t, want, string(text))
}

// TestTheDynamicClientReadsWhatWasPut: client-go, which makes its requests in its own way, sees and deletes the objects.
func TestTheDynamicClientReadsWhatWasPut(t *testing.T) {
	t.Parallel()
	s, _, server := open(t)
	require.NoError(t, s.Put(t.Context(), rulestest.Group("shop", "up")))
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	require.NoError(t, err)
	objects := client.Resource(resource).Namespace("monitoring")
	o, err := objects.Get(t.Context(), "littoral-"+rules.ID("shop"), metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "PrometheusRule", o.GetKind())
	options := metav1.ApplyOptions{FieldManager: "littoral", Force: true}
	o.SetManagedFields(nil)
	_, err = objects.Apply(t.Context(), o.GetName(), o, options)
	require.NoError(t, err)
	list, err := s.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []rules.Group{rulestest.Group("shop", "up")}, list)
}

func TestObjectsOfOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	s, a, _ := open(t)
	name := "littoral-" + rules.ID("theirs")
	theirs := &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule"},
	}
	theirs.SetName(name)
	a.objects[name] = theirs
	list, err := s.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
	require.Equal(t, problem.NotFound, problem.KindOf(s.Delete(t.Context(), rules.ID("theirs"))))
	require.Contains(t, a.objects, name)
}

func TestWhatTheAPIServerRefuses(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		status *apierrors.StatusError
		kind   problem.Kind
	}{
		"rules that the operator's webhook finds invalid": {
			apierrors.NewInvalid(schema.GroupKind{Group: resource.Group, Kind: "PrometheusRule"}, "x", nil),
			problem.Invalid,
		},
		"a service account without the right": {apierrors.NewForbidden(resource.GroupResource(), "x", nil), problem.Unavailable},
		"a cluster whose storage is away":     {apierrors.NewInternalError(io.ErrUnexpectedEOF), problem.Unavailable},
		"a namespace that is not there": {
			apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "monitoring"), problem.Unavailable,
		},
		"a server with too much to do to answer well": {apierrors.NewTooManyRequests("later", 0), problem.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, a, _ := open(t)
			status := row.status.Status()
			a.refuse = &status
			err := s.Put(t.Context(), rulestest.Group("shop", "up"))
			require.Equal(t, row.kind, problem.KindOf(err), "%v", err)
		})
	}
}

func TestAClusterWithoutTheOperatorIsToldApart(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	s := prometheusrule.New(prometheusrule.Server{URL: server.URL, HTTP: server.Client()}, "monitoring", nil)
	for _, err := range []error{
		s.Put(t.Context(), rulestest.Group("shop", "up")), s.Delete(t.Context(), rules.ID("shop")),
	} {
		require.Equal(t, problem.Unavailable, problem.KindOf(err))
		require.ErrorContains(t, err, "install the Prometheus operator")
	}
}
