package manifest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/manifest"
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
			require.ErrorAs(t, manifest.Classify(err, "Deployment web"), &refusal)
			require.Equal(t, orchestrator.ReasonApplyConflict, refusal.Reason)
			require.Contains(t, refusal.Message, "Deployment web: Apply failed")
		})
	}
	changed := apierrors.NewConflict(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", nil)
	require.Equal(t, problem.Unavailable, problem.KindOf(manifest.Classify(changed, "Deployment web")))
}

// TestClassify_ofWhatWebhooksDeny: an API server passes on the code and the reason that a webhook gives. Without a code
// it answers 400.
func TestClassify_ofWhatWebhooksDeny(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		code   int32
		reason metav1.StatusReason
		want   string // empty = it is tried again
	}{
		"without a reason":    {400, "", "Denied"},
		"with a sentence":     {403, "the image is not signed", "Denied"},
		"with a usual reason": {403, metav1.StatusReasonForbidden, "Forbidden"},
		"with a rare code":    {418, "", "Denied"},
		"for now":             {429, metav1.StatusReasonTooManyRequests, ""},
		"by a failure":        {500, metav1.StatusReasonInternalError, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := manifest.Classify(&apierrors.StatusError{ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Code: row.code, Reason: row.reason,
				Message: `admission webhook "policy.example.org" denied the request: no`,
			}}, "Deployment web")
			var refusal *orchestrator.Refusal
			if row.want == "" {
				require.NotErrorAs(t, err, &refusal)
				require.Equal(t, problem.Unavailable, problem.KindOf(err))
				return
			}
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, row.want, refusal.Reason)
			require.Contains(t, refusal.Message, "policy.example.org")
		})
	}
}
