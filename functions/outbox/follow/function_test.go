package follow_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/littoral-project/littoral/functions/outbox/follow"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/kube"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/kubeapi"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const at = "/apis/eventing.knative.dev/v1/namespaces/littoral/triggers/"

// trigger is one of ours, or of another who uses our Broker.
func trigger(name, labels, filters, consumer string) string {
	return `{"apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
"metadata": {"name": "` + name + `", "namespace": "littoral", "labels": {` + labels + `}},
"spec": {"broker": "default", ` + filters + `, "subscriber": {"ref": {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "` + consumer + `"}}}}`
}

const ours = `"app.kubernetes.io/part-of": "littoral"`

func run(t *testing.T, db *store.DB, given map[string]string) error {
	t.Helper()
	f, err := follow.New(function.Platform{DB: db, Log: slog.New(slog.DiscardHandler), Settings: settings.Map(given)}.Env("outbox-follow"))
	require.NoError(t, err)
	return f.Run(t.Context())
}

func subscriptions(t *testing.T, db *store.DB) []string {
	t.Helper()
	list, err := store.Collect(context.Background(), db, "read", pgx.RowTo[string],
		`select consumer || ' ' || type || ' ' || attributes from subscriptions order by 1`)
	require.NoError(t, err)
	return list
}

func TestSubscriptionsFollowTheTriggers(t *testing.T) {
	t.Parallel()
	db, api := storetest.New(t), kubeapi.Start(t, []string{"littoral"}, nil)
	api.Define("eventing.knative.dev", "v1", "Trigger", "triggers", true)
	given := map[string]string{"TRIGGERS": api.KubeconfigFile(t, "triggers")}
	for name, text := range map[string]string{
		"place": trigger("place", ours, `"filters": [{"any": [{"exact": {"type": "a"}}, {"exact": {"type": "b", "jobtype": "x"}}]}]`, "place"),
		"older": trigger("older", ours, `"filter": {"attributes": {"type": "a", "dialect": "codeco"}}`, "older"),
		"vague": trigger("vague", ours, `"filters": [{"cesql": "type LIKE 'a%'"}]`, "vague"),
		"alien": trigger("alien", ``, `"filters": [{"exact": {"type": "a"}}]`, "alien"),
	} {
		api.Put(t, at+name, text)
	}
	require.NoError(t, db.ExpectSubscriptions(t.Context()))
	require.NoError(t, run(t, db, given))
	require.Equal(t, []string{`older a {"dialect": "codeco"}`, `place a {}`, `place b {"jobtype": "x"}`}, subscriptions(t, db),
		"one that cannot be read and one of others are left out")

	client, err := kube.Open(given["TRIGGERS"], nil)
	require.NoError(t, err)
	resource := client.Resource(schema.GroupVersionResource{Group: "eventing.knative.dev", Version: "v1", Resource: "triggers"})
	require.NoError(t, resource.Namespace("littoral").Delete(t.Context(), "older", metav1.DeleteOptions{}))
	require.NoError(t, run(t, db, given))
	require.Equal(t, []string{`place a {}`, `place b {"jobtype": "x"}`}, subscriptions(t, db))
}

// TestWithoutAClusterNothingChanges: nor while it does not answer, since what was known then is better than nothing.
func TestWithoutAClusterNothingChanges(t *testing.T) {
	t.Parallel()
	db, api := storetest.New(t), kubeapi.Start(t, []string{"littoral"}, nil)
	_, err := db.Subscribe(t.Context(), []store.Subscription{{Consumer: "place", Type: "a"}})
	require.NoError(t, err)
	require.NoError(t, run(t, db, nil))
	require.Error(t, run(t, db, map[string]string{"TRIGGERS": api.KubeconfigFile(t, "triggers")}), "it does not know the kind")
	require.Equal(t, []string{`place a {}`}, subscriptions(t, db))
	_, err = follow.New(function.Platform{DB: db, Settings: settings.Map(map[string]string{"TRIGGERS": "/nowhere"})}.Env("outbox-follow"))
	require.ErrorContains(t, err, "TRIGGERS")
}
