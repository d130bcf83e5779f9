package prometheusrule_test

import (
	"encoding/json"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/transport"

	"github.com/littoral-project/littoral/shared/kube"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/telemetry/rules"
	"github.com/littoral-project/littoral/shared/telemetry/rules/prometheusrule"
	"github.com/littoral-project/littoral/shared/telemetry/rules/rulestest"
	"github.com/littoral-project/littoral/test/kubeapi"
)

const collection = "/apis/monitoring.coreos.com/v1/namespaces/monitoring/prometheusrules/"

var resource = prometheusrule.Resource

// server returns a cluster that has a namespace for rules, but not the kind yet.
func server(t *testing.T) (*prometheusrule.Store, *kubeapi.Server) {
	t.Helper()
	a := kubeapi.Start(t, []string{"monitoring"}, nil)
	client, err := kube.New(a.URL, &transport.Config{})
	require.NoError(t, err)
	return prometheusrule.New(client, "monitoring", map[string]string{"release": "prometheus"}), a
}

// open returns a store in a cluster with the Prometheus operator, with paged lists. The double lacks the operator's own
// validation.
func open(t *testing.T) (*prometheusrule.Store, *kubeapi.Server) {
	t.Helper()
	s, a := server(t)
	a.Define(resource.Group, resource.Version, "PrometheusRule", resource.Resource, true)
	a.Page(2)
	return s, a
}

func TestStore(t *testing.T) {
	t.Parallel()
	rulestest.Run(t, func(t *testing.T) rulestest.Place {
		s, a := open(t)
		count := func() int { return len(a.Paths(collection)) }
		return rulestest.Place{Store: s, Count: count, Stop: func() { a.Cut(true) }}
	})
}

func TestAnObjectIsWhatTheOperatorReads(t *testing.T) {
	t.Parallel()
	s, a := open(t)
	require.NoError(t, s.Put(t.Context(), rulestest.Group("Shop CPU", "up > 1")))
	name := "littoral-" + rules.ID("Shop CPU")
	o := a.Get(collection + name)
	require.NotNil(t, o)
	metadata := o.Object["metadata"].(map[string]any)
	for _, own := range []string{"uid", "namespace", "resourceVersion", "generation", "creationTimestamp"} {
		require.Contains(t, metadata, own)
		delete(metadata, own)
	}
	want := `{"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
		"metadata": {"name": "` + name + `", "labels": {"release": "prometheus", "app.kubernetes.io/managed-by": "littoral"}},
		"spec": {"groups": [{"name": "Shop CPU", "rules": [{"alert": "Shop CPU:rule-0", "expr": "up > 1", "for": "1m",
			"annotations": {"plm_id": "1", "plm_expr_value": "{{ $value }}"}}]}]}}`
	text, err := json.Marshal(o.Object)
	require.NoError(t, err)
	require.JSONEq(t, want, string(text))
}

// TestAGroupIsWhatWasPutLast: even if somebody else has changed the object since.
func TestAGroupIsWhatWasPutLast(t *testing.T) {
	t.Parallel()
	s, a := open(t)
	require.NoError(t, s.Put(t.Context(), rulestest.Group("shop", "up > 1")))
	o := a.Get(collection + "littoral-" + rules.ID("shop"))
	o.Object["spec"] = map[string]any{"groups": []any{}}
	_, err := a.Client(t).Resource(resource).Namespace("monitoring").Update(t.Context(), o, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), rulestest.Group("shop", "up > 2")))
	list, err := s.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []rules.Group{rulestest.Group("shop", "up > 2")}, list)
}

// TestTheRoleGrantsWhatIsUsed: and no more.
func TestTheRoleGrantsWhatIsUsed(t *testing.T) {
	t.Parallel()
	s, a := open(t)
	for _, expr := range []string{"up > 1", "up > 2"} {
		require.NoError(t, s.Put(t.Context(), rulestest.Group("shop", expr)))
	}
	_, err := s.List(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Delete(t.Context(), rules.ID("shop")))
	var granted []string
	for _, function := range []string{"telemetry-rule-create", "telemetry-rule-delete", "telemetry-rule-list"} {
		granted = append(granted, kubeapi.Granted(t, "../../../../infra/base/rbac.yaml", function)...)
	}
	require.ElementsMatch(t, granted, a.Used())
}

func TestObjectsOfOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	s, a := open(t)
	path := collection + "littoral-" + rules.ID("theirs")
	a.Put(t, path, `{"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
		"metadata": {"name": "littoral-`+rules.ID("theirs")+`", "namespace": "monitoring"}}`)
	list, err := s.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
	require.Equal(t, problem.NotFound, problem.KindOf(s.Delete(t.Context(), rules.ID("theirs"))))
	require.NotNil(t, a.Get(path))
}

func TestAnObjectThatNobodyCanReadHidesNoOther(t *testing.T) {
	t.Parallel()
	s, a := open(t)
	require.NoError(t, s.Put(t.Context(), rulestest.Group("shop", "up")))
	a.Put(t, collection+"littoral-broken", `{"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
		"metadata": {"name": "littoral-broken", "namespace": "monitoring", "labels": {"app.kubernetes.io/managed-by": "littoral"}},
		"spec": {"groups": "none"}}`)
	list, err := s.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []rules.Group{rulestest.Group("shop", "up")}, list)
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
			s, a := open(t)
			a.Refuse(func(string, string) error { return row.status })
			err := s.Put(t.Context(), rulestest.Group("shop", "up"))
			require.Equal(t, row.kind, problem.KindOf(err), "%v", err)
		})
	}
}

func TestAClusterWithoutTheOperatorHasAReasonOfItsOwn(t *testing.T) {
	t.Parallel()
	s, _ := server(t)
	_, err := s.List(t.Context())
	for _, err := range []error{
		err, s.Put(t.Context(), rulestest.Group("shop", "up")), s.Delete(t.Context(), rules.ID("shop")),
	} {
		require.Equal(t, problem.Unavailable, problem.KindOf(err))
		require.ErrorContains(t, err, "install the Prometheus operator")
	}
}
