package broker

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	eventingduckv1 "knative.dev/eventing/pkg/apis/duck/v1"
	"sigs.k8s.io/yaml"
)

// The expected values are those of Knative's own dispatcher, kncloudevents.RetryConfigFromDeliverySpec and
// SelectiveRetry of eventing v0.50.0; importing it for a comparison would add half a control plane.
func TestPolicy(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		retries int
		waits   []time.Duration // before retry 0, 1, 2, 3
		timeout time.Duration
	}{
		`{}`:                   {0, []time.Duration{0, 0, 0, 0}, defaultTimeout},
		`{retry: 3}`:           {3, []time.Duration{0, 0, 0, 0}, defaultTimeout},
		`{backoffDelay: PT1S}`: {0, []time.Duration{0, 0, 0, 0}, defaultTimeout},
		`{timeout: PT3S}`:      {0, []time.Duration{0, 0, 0, 0}, 3 * time.Second},
		`{retry: 3, backoffPolicy: linear, backoffDelay: PT0.5S}`: {
			3, []time.Duration{0, 500 * time.Millisecond, time.Second, 1500 * time.Millisecond}, defaultTimeout,
		},
		`{retry: 10, backoffPolicy: exponential, backoffDelay: PT1M}`: {
			10, []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute}, defaultTimeout,
		},
	} {
		var spec eventingduckv1.DeliverySpec
		require.NoError(t, yaml.UnmarshalStrict([]byte(text), &spec))
		got, err := newPolicy(spec)
		require.NoError(t, err)
		require.Equal(t, want.retries, got.retries, text)
		require.Equal(t, want.timeout, got.timeout, text)
		for n, wait := range want.waits {
			require.Equal(t, wait, got.backoff(n), "%s, retry %d", text, n)
		}
	}
	bad := "soon"
	_, err := newPolicy(eventingduckv1.DeliverySpec{Timeout: &bad})
	require.ErrorContains(t, err, "delivery.timeout")
}

func TestRepeatable(t *testing.T) {
	t.Parallel()
	for code := 200; code < 600; code++ {
		want := code >= 500 || slices.Contains([]int{404, 408, 409, 429}, code)
		require.Equal(t, want, repeatable(code), "status %d", code)
	}
	require.True(t, repeatable(noResponse))
}

func TestPolicy_waitsAsLongAsTheSubscriberAsksWithinLimits(t *testing.T) {
	t.Parallel()
	busy := result{code: http.StatusServiceUnavailable, header: http.Header{"Retry-After": {"30"}}}
	for text, want := range map[string]time.Duration{
		`{retry: 1}`:                       0, // Knative only respects the header if the spec says so
		`{retry: 1, retryAfterMax: PT10S}`: 10 * time.Second,
		`{retry: 1, retryAfterMax: PT60S}`: 30 * time.Second,
		`{retry: 1, retryAfterMax: PT60S, backoffPolicy: exponential, backoffDelay: PT40S}`: 40 * time.Second,
	} {
		var spec eventingduckv1.DeliverySpec
		require.NoError(t, yaml.UnmarshalStrict([]byte(text), &spec))
		p, err := newPolicy(spec)
		require.NoError(t, err)
		require.Equal(t, want, p.wait(0, busy), text)
	}
	at := http.Header{"Retry-After": {time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}}
	require.InDelta(t, time.Hour, retryAfter(at), float64(2*time.Second))
	require.Zero(t, retryAfter(http.Header{"Retry-After": {"soon"}}))
}

func TestPolicy_neverWaitsANegativeTime(t *testing.T) {
	t.Parallel()
	exponential, delay := eventingduckv1.BackoffPolicyExponential, "PT1M"
	p, err := newPolicy(eventingduckv1.DeliverySpec{BackoffPolicy: &exponential, BackoffDelay: &delay})
	require.NoError(t, err)
	require.Equal(t, 24*time.Hour, p.backoff(500))
}
