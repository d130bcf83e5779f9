package identity_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/events/identity"
	"github.com/littoral-project/littoral/shared/events/identity/identitytest"
	"github.com/littoral-project/littoral/shared/problem"
)

func delivery(authorization string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	return r
}

func TestADeliveryIsTakenFromTheNamespaceAlone(t *testing.T) {
	t.Parallel()
	c := identitytest.New(t)
	tokens, err := identity.Open(c.Config())
	require.NoError(t, err)
	deliveries := tokens.Deliveries(nil)
	require.NoError(t, deliveries.Check(delivery("Bearer "+c.Token(nil))))

	forged := identitytest.New(t).Token(nil) // signed with another cluster's key
	for name, row := range map[string]struct {
		authorization string
		kind          problem.Kind
	}{
		"no token":          {"", problem.Unauthenticated},
		"forged":            {"Bearer " + forged, problem.Unauthenticated},
		"for the Broker":    {"Bearer " + c.Token(map[string]any{"aud": []string{"broker"}}), problem.Unauthenticated},
		"expired":           {"Bearer " + c.Token(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}), problem.Unauthenticated},
		"another issuer":    {"Bearer " + c.Token(map[string]any{"iss": "https://elsewhere"}), problem.Unauthenticated},
		"another namespace": {"Bearer " + c.Token(map[string]any{"sub": "system:serviceaccount:default:x"}), problem.Forbidden},
		"a namespace with a longer name": {
			"Bearer " + c.Token(map[string]any{"sub": "system:serviceaccount:littoral-x:x"}), problem.Forbidden,
		},
	} {
		err := deliveries.Check(delivery(row.authorization))
		require.Equal(t, row.kind, problem.KindOf(err), "%s: %v", name, err)
	}
}

func TestADeliveryWaitsForTheKeys(t *testing.T) {
	t.Parallel()
	c := identitytest.New(t)
	config := c.Config()
	tokens, err := identity.Open(config)
	require.NoError(t, err)
	c.Stop()
	err = tokens.Deliveries(nil).Check(delivery("Bearer " + c.Token(nil)))
	require.Equal(t, problem.Unavailable, problem.KindOf(err), "Knative delivers again: %v", err)
}

func TestTheBrokerIsGivenTheTokenOfTheMoment(t *testing.T) {
	t.Parallel()
	c := identitytest.New(t)
	var seen []string
	broker := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
	}))
	t.Cleanup(broker.Close)
	tokens, err := identity.Open(c.Config())
	require.NoError(t, err)
	client := &http.Client{Transport: tokens.Transport(http.DefaultTransport)}
	post := func() {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, broker.URL, http.NoBody)
		require.NoError(t, err)
		answer, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Empty(t, r.Header.Get("Authorization"), "the request is the caller's")
	}
	post()
	c.Write("broker", "renewed")
	post()
	require.Equal(t, []string{"Bearer for the Broker", "Bearer renewed"}, seen)
}

func TestWithoutTheFeatureNothingIsAskedFor(t *testing.T) {
	t.Parallel()
	tokens, err := identity.Open(identity.Config{Audience: "littoral-events"})
	require.NoError(t, err)
	require.Equal(t, http.DefaultTransport, tokens.Transport(http.DefaultTransport))
	require.NoError(t, tokens.Deliveries(nil).Check(delivery("")))
}

func TestAVolumeThatIsNoneStopsTheFunction(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ file, text, want string }{
		"no authorities":      {"ca.crt", "none", "ca.crt holds no certificate"},
		"no token":            {"api", "none", "api: "},
		"a token of somebody": {"api", identitytest.New(t).Token(map[string]any{"sub": "alice"}), "not the token of a ServiceAccount"},
	} {
		c := identitytest.New(t)
		c.Write(row.file, row.text)
		_, err := identity.Open(c.Config())
		require.ErrorContains(t, err, row.want, name)
	}
	_, err := identity.Open(identity.Config{Dir: t.TempDir()})
	require.ErrorIs(t, err, os.ErrNotExist)
}
