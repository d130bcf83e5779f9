package auth_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/auth/authtest"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// issuer serves real discovery and key documents and signs tokens with the key behind them.
type issuer struct {
	*httptest.Server
	key  *rsa.PrivateKey
	hits atomic.Int64 // of the key document
	away atomic.Bool
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{key: authtest.NewKey(t)}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if i.away.Load() {
			w.WriteHeader(http.StatusBadGateway) // whatever stands below it
		}
		switch r.URL.Path {
		case "/keys":
			i.hits.Add(1)
			_ = json.NewEncoder(w).Encode(authtest.Keys(i.key, "k1"))
		default:
			_ = json.NewEncoder(w).Encode(map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
		}
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) verifier() *auth.Verifier {
	return auth.NewVerifier(auth.Config{Issuer: i.URL, Audience: "littoral"}, i.Client(), nil)
}

type claims = map[string]any

// token signs the default claims with changes; a nil value removes a claim.
func (i *issuer) token(t *testing.T, key *rsa.PrivateKey, changes claims) string {
	t.Helper()
	return i.tokenOf(t, key, "k1", changes)
}

func (i *issuer) tokenOf(t *testing.T, key *rsa.PrivateKey, id string, changes claims) string {
	t.Helper()
	return authtest.Sign(t, key, id, claims{
		"iss": i.URL, "sub": "alice", "aud": []string{"littoral"}, "roles": []string{"viewer"},
		"exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
	}, changes)
}

func request(authorization string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	return r
}

func TestAuthenticate_refuses(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	verifier := i.verifier()
	stranger := authtest.NewKey(t)
	for name, row := range map[string]struct {
		header string
		kind   problem.Kind
	}{
		"no header":            {"", problem.Unauthenticated},
		"another scheme":       {"Basic YTpi", problem.Unauthenticated},
		"no token":             {"Bearer ", problem.Unauthenticated},
		"junk":                 {"Bearer junk", problem.Unauthenticated},
		"an expired token":     {"Bearer " + i.token(t, i.key, claims{"exp": time.Now().Add(-time.Minute).Unix()}), problem.Unauthenticated},
		"a token without end":  {"Bearer " + i.token(t, i.key, claims{"exp": nil}), problem.Unauthenticated},
		"a token for tomorrow": {"Bearer " + i.token(t, i.key, claims{"nbf": time.Now().Add(time.Hour).Unix()}), problem.Unauthenticated},
		"another issuer":       {"Bearer " + i.token(t, i.key, claims{"iss": "https://elsewhere"}), problem.Unauthenticated},
		"another audience":     {"Bearer " + i.token(t, i.key, claims{"aud": "elsewhere"}), problem.Unauthenticated},
		"no audience":          {"Bearer " + i.token(t, i.key, claims{"aud": nil}), problem.Unauthenticated},
		"another key":          {"Bearer " + i.token(t, stranger, nil), problem.Unauthenticated},
		"a role too low":       {"Bearer " + i.token(t, i.key, nil), problem.Forbidden},
		"no role":              {"Bearer " + i.token(t, i.key, claims{"roles": nil}), problem.Forbidden},
		"an unknown role":      {"Bearer " + i.token(t, i.key, claims{"roles": []string{"root"}}), problem.Forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := verifier.Authenticate(request(row.header), auth.Operator)
			require.Equal(t, row.kind, problem.KindOf(err), "%v", err)
		})
	}
}

// TestAuthenticate_takesWhateverAnIssuerSignsWith: Keycloak, for instance, can be configured for any of these. It
// refuses symmetric algorithms with a known key: with the issuer's public key as the secret, anybody could sign.
func TestAuthenticate_takesWhateverAnIssuerSignsWith(t *testing.T) {
	t.Parallel()
	curve := func(c elliptic.Curve) any {
		key, err := ecdsa.GenerateKey(c, rand.Reader)
		require.NoError(t, err)
		return key
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	rsaKey := authtest.NewKey(t)
	p256, p384, p521 := curve(elliptic.P256()), curve(elliptic.P384()), curve(elliptic.P521())
	var set jose.JSONWebKeySet
	for id, key := range map[string]any{"rsa": rsaKey, "p256": p256, "p384": p384, "p521": p521, "ed": edwards} {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.(crypto.Signer).Public(), KeyID: id, Use: "sig"})
	}
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(set)
	}))
	t.Cleanup(issuer.Close)
	verifier := auth.NewVerifier(auth.Config{Issuer: "i", Audience: "littoral", JWKSURL: issuer.URL}, issuer.Client(), nil)
	says := claims{"iss": "i", "sub": "alice", "aud": "littoral", "exp": time.Now().Add(time.Hour).Unix()}
	for algorithm, row := range map[jose.SignatureAlgorithm]struct {
		key   any
		id    string
		taken bool
	}{
		jose.RS256: {rsaKey, "rsa", true}, jose.RS384: {rsaKey, "rsa", true}, jose.RS512: {rsaKey, "rsa", true},
		jose.PS256: {rsaKey, "rsa", true}, jose.PS384: {rsaKey, "rsa", true}, jose.PS512: {rsaKey, "rsa", true},
		jose.ES256: {p256, "p256", true}, jose.ES384: {p384, "p384", true}, jose.ES512: {p521, "p521", true},
		jose.EdDSA: {edwards, "ed", true},
		jose.HS256: {rsaKey.N.Bytes(), "rsa", false}, jose.HS512: {rsaKey.N.Bytes(), "rsa", false},
	} {
		p, err := verifier.Verify(t.Context(), authtest.SignBy(t, algorithm, row.key, row.id, says, nil))
		if row.taken {
			require.NoError(t, err, algorithm)
			require.Equal(t, "alice", p.Subject)
		} else {
			require.Equal(t, problem.Unauthenticated, problem.KindOf(err), algorithm)
		}
	}
	body, err := json.Marshal(says)
	require.NoError(t, err)
	text := base64.RawURLEncoding.EncodeToString
	_, err = verifier.Verify(t.Context(), text([]byte(`{"alg":"none"}`))+"."+text(body)+".")
	require.Equal(t, problem.Unauthenticated, problem.KindOf(err), "%v", err)
}

func TestAuthenticate_findsRolesWhereIssuersPutThem(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	verifier := i.verifier()
	for name, row := range map[string]struct {
		changes claims
		roles   []auth.Role
	}{
		"a plain claim":       {claims{"roles": []string{"operator"}}, []auth.Role{auth.Operator}},
		"Keycloak's own":      {claims{"roles": nil, "realm_access": claims{"roles": []string{"operator"}}}, []auth.Role{auth.Operator}},
		"both, told once":     {claims{"roles": []string{"admin"}, "realm_access": claims{"roles": []string{"admin", "x"}}}, []auth.Role{auth.Admin}},
		"an audience of many": {claims{"roles": []string{"operator"}, "aud": []string{"other", "littoral"}}, []auth.Role{auth.Operator}},
		"audience as string":  {claims{"roles": []string{"operator"}, "aud": "littoral"}, []auth.Role{auth.Operator}},
		"a clock a bit ahead": {claims{"roles": []string{"operator"}, "nbf": time.Now().Add(5 * time.Second).Unix()}, []auth.Role{auth.Operator}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := verifier.Authenticate(request("bearer "+i.token(t, i.key, row.changes)), auth.Operator)
			require.NoError(t, err)
			require.Equal(t, "alice", p.Subject)
			require.Equal(t, row.roles, p.Roles)
		})
	}
}

func TestAuthenticate_fetchesKeysOnceAndOnlyWhenNeeded(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	verifier := i.verifier()
	_, err := verifier.Authenticate(request(""), auth.Open)
	require.NoError(t, err, "an open route asks nobody")
	require.Zero(t, i.hits.Load())
	for range 3 {
		_, err := verifier.Authenticate(request("Bearer "+i.token(t, i.key, nil)), auth.Viewer)
		require.NoError(t, err)
	}
	require.Equal(t, int64(1), i.hits.Load())
}

func TestAuthenticate_isUnavailableWhileTheIssuerIsAway(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	token := "Bearer " + i.token(t, i.key, nil)
	verifier := i.verifier()
	i.away.Store(true)
	_, err := verifier.Authenticate(request(token), auth.Viewer)
	require.Equal(t, problem.Unavailable, problem.KindOf(err), "%v", err)
	i.away.Store(false)
	_, err = verifier.Authenticate(request(token), auth.Viewer)
	require.NoError(t, err, "and works once it is back")
}

// TestAuthenticate_sharesKeysThroughTheStore: instances come and go, but the issuer is asked once and need not be
// reachable later.
func TestAuthenticate_sharesKeysThroughTheStore(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	i := newIssuer(t)
	instance := func(header string) error {
		v := auth.NewVerifier(auth.Config{Issuer: i.URL, Audience: "littoral"}, i.Client(), db)
		_, err := v.Authenticate(request("Bearer "+header), auth.Viewer)
		return err
	}
	token, forged := i.token(t, i.key, nil), i.token(t, authtest.NewKey(t), nil)
	require.NoError(t, instance(token))
	require.NoError(t, instance(token))
	require.Equal(t, problem.Unauthenticated, problem.KindOf(instance(forged)))
	require.Equal(t, int64(1), i.hits.Load())

	aged := func(by string) {
		_, err := db.Exec(t.Context(), "update issuer_keys set fetched_at = now() - $1::interval", by)
		require.NoError(t, err)
	}
	aged("6 minutes")
	i.away.Store(true)
	require.NoError(t, instance(token), "the issuer is away: what it said last holds for a while")
	aged("2 hours")
	require.Equal(t, problem.Unavailable, problem.KindOf(instance(token)), "but not for ever")
	i.away.Store(false)
	require.NoError(t, instance(token))
	require.Equal(t, int64(2), i.hits.Load())

	i.key = authtest.NewKey(t) // the issuer replaces its key without changing the id
	aged("6 minutes")
	require.Equal(t, problem.Unauthenticated, problem.KindOf(instance(token)), "a key that was taken back")
	require.NoError(t, instance(i.token(t, i.key, nil)))
}

// TestAuthenticate_keepsTheNewerKeys: the keys that another instance has stored may be older than those that this one
// has fetched.
func TestAuthenticate_keepsTheNewerKeys(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	i := newIssuer(t)
	v := auth.NewVerifier(auth.Config{Issuer: i.URL, Audience: "littoral"}, i.Client(), db)
	verify := func(id string) error {
		_, err := v.Authenticate(request("Bearer "+i.tokenOf(t, i.key, id, nil)), auth.Viewer)
		return err
	}
	require.NoError(t, verify("k1"))
	former, err := json.Marshal(authtest.Keys(authtest.NewKey(t), "former"))
	require.NoError(t, err)
	_, err = db.Exec(t.Context(), "update issuer_keys set keys = $1, fetched_at = now() - interval '1 minute'", former)
	require.NoError(t, err)
	require.Equal(t, problem.Unauthenticated, problem.KindOf(verify("made up")), "which has the store looked at")
	require.NoError(t, verify("k1"))
}

// TestAuthenticate_believesNoOtherIssuer: the document at its URL may be that of another issuer, with other keys.
func TestAuthenticate_believesNoOtherIssuer(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	v := auth.NewVerifier(auth.Config{Issuer: i.URL + "/", Audience: "littoral"}, i.Client(), nil)
	_, err := v.Authenticate(request("Bearer "+i.token(t, i.key, claims{"iss": i.URL + "/"})), auth.Viewer)
	require.Equal(t, problem.Unavailable, problem.KindOf(err), "%v", err)
}

// TestAuthenticate_asksForKeysThatAreNew: but only at intervals, even if a caller makes up key ids.
func TestAuthenticate_asksForKeysThatAreNew(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	v := i.verifier()
	_, err := v.Authenticate(request("Bearer "+i.token(t, i.key, nil)), auth.Viewer)
	require.NoError(t, err)
	for range 5 {
		_, err = v.Authenticate(request("Bearer "+i.tokenOf(t, i.key, "k2", nil)), auth.Viewer)
		require.Equal(t, problem.Unauthenticated, problem.KindOf(err), "%v", err)
	}
	require.Equal(t, int64(1), i.hits.Load())
}

// hanging is a transport to an issuer that drops packets once it hangs.
type hanging struct {
	key   *rsa.PrivateKey
	hangs bool
	takes time.Duration // to answer, else
	asked int
}

func (h *hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	h.asked++
	if h.hangs {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	select {
	case <-time.After(h.takes):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	answer := httptest.NewRecorder()
	_ = json.NewEncoder(answer).Encode(authtest.Keys(h.key, "k1"))
	return answer.Result(), nil
}

// TestAuthenticate_anIssuerThatHangs: its last answer is valid for an hour. A call ends within its time, and callers
// with made-up key ids cannot block others.
func TestAuthenticate_anIssuerThatHangs(t *testing.T) {
	t.Parallel()
	const callTakes = 10 * time.Second
	synctest.Test(t, func(t *testing.T) {
		way := &hanging{key: authtest.NewKey(t)}
		i := &issuer{Server: &httptest.Server{URL: "https://issuer"}, key: way.key}
		v := auth.NewVerifier(auth.Config{Issuer: i.URL, Audience: "littoral", JWKSURL: i.URL + "/keys"},
			&http.Client{Transport: way}, nil)
		call := func(token string) (took time.Duration, err error) {
			ctx, cancel := context.WithTimeout(t.Context(), callTakes)
			defer cancel()
			begin := time.Now()
			_, err = v.Authenticate(request("Bearer "+token).WithContext(ctx), auth.Viewer)
			return time.Since(begin), err
		}
		good := i.token(t, i.key, claims{"exp": time.Now().Add(2 * time.Hour).Unix()})
		_, err := call(good)
		require.NoError(t, err)

		way.hangs = true
		time.Sleep(time.Minute)
		var strangers sync.WaitGroup
		for range 5 {
			strangers.Go(func() {
				took, err := call(i.tokenOf(t, i.key, "made up", nil))
				require.Equal(t, problem.Unavailable, problem.KindOf(err), "%v", err)
				require.LessOrEqual(t, took, 2*time.Second)
			})
		}
		synctest.Wait()
		took, err := call(good)
		require.NoError(t, err)
		require.Zero(t, took, "whose key is known waits for nobody")
		strangers.Wait()
		require.Equal(t, 2, way.asked)

		time.Sleep(10 * time.Minute)
		took, err = call(good)
		require.NoError(t, err, "what the issuer said last holds while it hangs")
		require.LessOrEqual(t, took, 2*time.Second)
		took, err = call(good)
		require.NoError(t, err)
		require.Zero(t, took, "and it is not asked at each call")

		time.Sleep(time.Hour)
		took, err = call(good)
		require.Equal(t, problem.Unavailable, problem.KindOf(err), "but not for ever: %v", err)
		require.Less(t, took, callTakes)
		way.hangs = false
		_, err = call(good)
		require.NoError(t, err)
	})
}

// silent is a store that drops packets.
type silent struct{}

func (silent) IssuerKeys(ctx context.Context, _ string) ([]byte, time.Duration, error) {
	<-ctx.Done()
	return nil, 0, ctx.Err()
}

func (silent) SaveIssuerKeys(ctx context.Context, _ string, _ []byte) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestAuthenticate_aStoreThatHangs: the call may be one that does not need the store.
func TestAuthenticate_aStoreThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		way := &hanging{key: authtest.NewKey(t)}
		i := &issuer{Server: &httptest.Server{URL: "https://issuer"}, key: way.key}
		v := auth.NewVerifier(auth.Config{Issuer: i.URL, Audience: "littoral", JWKSURL: i.URL + "/keys"},
			&http.Client{Transport: way}, silent{})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begin := time.Now()
		_, err := v.Authenticate(request("Bearer "+i.token(t, i.key, nil)).WithContext(ctx), auth.Viewer)
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(begin), 3*time.Second)
	})
}

// TestAuthenticate_asksOnForOthers: if one caller hangs up, that is no failure of the issuer.
func TestAuthenticate_asksOnForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		way := &hanging{key: authtest.NewKey(t), takes: 2 * time.Second}
		i := &issuer{Server: &httptest.Server{URL: "https://issuer"}, key: way.key}
		v := auth.NewVerifier(auth.Config{Issuer: i.URL, Audience: "littoral", JWKSURL: i.URL + "/keys"},
			&http.Client{Transport: way}, nil)
		r := request("Bearer " + i.token(t, i.key, nil))
		ctx, hangUp := context.WithTimeout(t.Context(), time.Second)
		defer hangUp()
		var waiting sync.WaitGroup
		waiting.Go(func() { _, _ = v.Authenticate(r.WithContext(ctx), auth.Viewer) })
		synctest.Wait()
		_, err := v.Authenticate(r, auth.Viewer)
		require.NoError(t, err)
		require.Equal(t, 1, way.asked)
		waiting.Wait()
	})
}

// TestShared_withoutASecretKnowsNobody: not even a caller that sends an empty one.
func TestShared_withoutASecretKnowsNobody(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"", "Bearer ", "Basic Og==", "Bearer secret"} {
		_, ok := auth.Shared{}.Recognize(request(header))
		require.False(t, ok, header)
	}
	for header, known := range map[string]bool{
		"Bearer secret": true, "bearer secret ": true, "Basic YTpzZWNyZXQ=": true, "Bearer secrets": false, "Basic YTpi": false, "": false,
	} {
		caller, ok := auth.Shared{Secret: "secret"}.Recognize(request(header))
		require.Equal(t, known, ok, header)
		require.Equal(t, known, caller.Can(auth.Alertmanager), header)
		require.False(t, caller.Can(auth.Viewer), header)
	}
}

// TestAuthenticate_passesOverKeysForOthers: an issuer may publish keys of unknown types.
func TestAuthenticate_passesOverKeysForOthers(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	own, err := json.Marshal(authtest.Keys(i.key, "k1").Keys[0])
	require.NoError(t, err)
	set := fmt.Sprintf(`{"keys": [{"kty": "OKP", "crv": "X25519", "use": "enc", "x": "AAAA"}, {"kty": "new"}, {}, %s]}`, own)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, set)
	}))
	t.Cleanup(server.Close)
	db := storetest.New(t)
	for range 2 { // from the issuer, then from the store
		v := auth.NewVerifier(auth.Config{Issuer: i.URL, Audience: "littoral", JWKSURL: server.URL}, server.Client(), db)
		_, err = v.Authenticate(request("Bearer "+i.token(t, i.key, nil)), auth.Viewer)
		require.NoError(t, err)
		server.Close()
	}
}

func TestVerify_withoutAnIssuerRefusesAll(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	_, err := auth.NewVerifier(auth.Config{}, http.DefaultClient, nil).Verify(t.Context(), i.token(t, i.key, nil))
	require.Equal(t, problem.Unauthenticated, problem.KindOf(err))
}

func TestActAs(t *testing.T) {
	t.Parallel()
	bound := auth.With(t.Context(), auth.Principal{AgentID: "a1"})
	require.NoError(t, auth.ActAs(bound, "a1"))
	require.ErrorIs(t, auth.ActAs(bound, "a2"), auth.ErrNotYou)
	require.NoError(t, auth.ActAs(t.Context(), "a2"), "an unbound token may act as any agent")
}

func TestGrants(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		have, need auth.Role
		want       bool
	}{
		{auth.Admin, auth.Agent, true},
		{auth.Admin, auth.Operator, true},
		{auth.Operator, auth.Viewer, true},
		{auth.Operator, auth.Agent, false},
		{auth.Agent, auth.Operator, false},
		{auth.Agent, auth.Viewer, true},
		{auth.Viewer, auth.Operator, false},
		{"stranger", auth.Viewer, false},
		{"", auth.Viewer, false},
		{"", auth.Open, true},
	} {
		require.Equal(t, row.want, row.have.Grants(row.need), "%q for %q", row.have, row.need)
	}
}
