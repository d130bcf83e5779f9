package orchestrator_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/problem"
)

// TestClassify_ofConflicts: fields of another manager are a refusal that a repeat would not change, however many they
// are. An object that was changed meanwhile is read and written once more.
func TestClassify_ofConflicts(t *testing.T) {
	t.Parallel()
	held := func(field string) metav1.StatusCause {
		return metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "helm"`, Field: field}
	}
	for name, err := range map[string]error{
		"one": apierrors.NewApplyConflict([]metav1.StatusCause{held(".spec.replicas")},
			`Apply failed with 1 conflict: conflict with "helm": .spec.replicas`),
		"two": apierrors.NewApplyConflict([]metav1.StatusCause{held(".spec.replicas"), held(".spec.paused")},
			"Apply failed with 2 conflicts: conflicts with \"helm\":\n- .spec.replicas\n- .spec.paused"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var refusal *orchestrator.Refusal
			require.ErrorAs(t, orchestrator.Classify(err, "Deployment web"), &refusal)
			require.Equal(t, orchestrator.ReasonApplyConflict, refusal.Reason)
			require.Contains(t, refusal.Message, "Deployment web: Apply failed")
		})
	}
	changed := apierrors.NewConflict(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", nil)
	require.Equal(t, problem.Unavailable, problem.KindOf(orchestrator.Classify(changed, "Deployment web")))
}
