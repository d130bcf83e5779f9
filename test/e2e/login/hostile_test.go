package login_test

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth/authtest"
	"github.com/littoral-project/littoral/shared/auth/session"
)

// forge makes tokens by hand, since no library makes the ones that are wrong.
type forge struct {
	t      *testing.T
	issuer *rsa.PrivateKey // the real one
	kid    string
	mine   *rsa.PrivateKey // the attacker's
	says   map[string]any  // of a valid token of an admin
}

func (f *forge) part(v any) string {
	text, ok := v.(string) // JSON as it is, for keys that are given twice
	if !ok {
		raw, err := json.Marshal(v)
		require.NoError(f.t, err)
		text = string(raw)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// claims are those of the valid token with changes; nil removes one.
func (f *forge) claims(changes map[string]any) map[string]any {
	all := map[string]any{}
	for _, m := range []map[string]any{f.says, changes} {
		for k, v := range m {
			if all[k] = v; v == nil {
				delete(all, k)
			}
		}
	}
	return all
}

// rs256 signs with a key, under any header.
func (f *forge) rs256(key *rsa.PrivateKey, header map[string]any, claims any) string {
	head := map[string]any{"alg": "RS256", "kid": f.kid, "typ": "JWT"}
	for k, v := range header {
		if head[k] = v; v == nil {
			delete(head, k)
		}
	}
	text := f.part(head) + "." + f.part(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	require.NoError(f.t, err)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func (f *forge) real(changes map[string]any) string { return f.rs256(f.issuer, nil, f.claims(changes)) }

func (f *forge) hs256(secret []byte) string {
	text := f.part(map[string]any{"alg": "HS256", "kid": f.kid}) + "." + f.part(f.claims(nil))
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (f *forge) none(alg, signature string) string {
	return f.part(map[string]any{"alg": alg, "kid": f.kid}) + "." + f.part(f.claims(nil)) + "." + signature
}

// newForge has the signing key of the laptop's issuer, which whoever can read its directory has.
func newForge(t *testing.T, s *system) *forge {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.settings["DIR"], "signing-key.pem"))
	require.NoError(t, err)
	block, _ := pem.Decode(text)
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	require.NoError(t, err)
	key, _ := parsed.(*rsa.PrivateKey)
	answer, err := http.Get(s.provider.url + "/keys")
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	var set struct{ Keys []struct{ Kid string } }
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&set))
	now := time.Now()
	return &forge{
		t: t, issuer: key, kid: set.Keys[0].Kid, mine: authtest.NewKey(t),
		says: map[string]any{
			"iss": s.provider.url, "sub": "mallory", "aud": []string{"littoral"}, "roles": []string{"admin"},
			"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		},
	}
}

// TestHostileTokens: none of them passes, sent as a bearer or in a session cookie.
func TestHostileTokens(t *testing.T) {
	t.Parallel()
	s := start(t, laptop)
	f := newForge(t, s)
	var asked atomic.Int64
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_ = json.NewEncoder(w).Encode(authtest.Keys(f.mine, f.kid))
	}))
	t.Cleanup(evil.Close)
	other := start(t, laptop)
	stranger := newForge(t, other)
	public, err := x509.MarshalPKIXPublicKey(&f.issuer.PublicKey)
	require.NoError(t, err)
	set, err := json.Marshal(authtest.Keys(f.issuer, f.kid))
	require.NoError(t, err)
	valid := f.real(nil)
	parts := strings.Split(valid, ".")
	hour := time.Now().Add(time.Hour)
	roles := func(changes map[string]any) string {
		all := map[string]any{"roles": nil}
		for k, v := range changes {
			all[k] = v
		}
		return f.real(all)
	}
	admin := []string{"admin"}
	mine := authtest.Keys(f.mine, "mine").Keys[0]

	const refused, powerless = http.StatusUnauthorized, http.StatusForbidden
	corpus := map[string]struct {
		token  string
		status int
	}{
		"for another audience":                   {f.real(map[string]any{"aud": "elsewhere"}), refused},
		"for an audience that begins like ours":  {f.real(map[string]any{"aud": []string{"littoral-staging", "littoral "}}), refused},
		"for an audience in an object":           {f.real(map[string]any{"aud": map[string]any{"littoral": true}}), refused},
		"for nobody":                             {f.real(map[string]any{"aud": nil}), refused},
		"with our name as the authorized party":  {f.real(map[string]any{"aud": "elsewhere", "azp": "littoral"}), refused},
		"expired":                                {f.real(map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}), refused},
		"without an end":                         {f.real(map[string]any{"exp": nil}), refused},
		"with an end in words":                   {f.real(map[string]any{"exp": "never"}), refused},
		"with a negative end":                    {f.real(map[string]any{"exp": -1}), refused},
		"not valid yet":                          {f.real(map[string]any{"nbf": hour.Unix()}), refused},
		"of another issuer":                      {stranger.real(nil), refused},
		"of another issuer in our issuer's name": {stranger.real(map[string]any{"iss": s.provider.url}), refused},
		"of our issuer in another's name":        {f.real(map[string]any{"iss": other.provider.url}), refused},
		"of an issuer with a slash more":         {f.real(map[string]any{"iss": s.provider.url + "/"}), refused},
		"of an issuer in a list":                 {f.real(map[string]any{"iss": []string{s.provider.url}}), refused},
		"of no issuer":                           {f.real(map[string]any{"iss": nil}), refused},

		"alg none":                                {f.none("none", ""), refused},
		"alg None":                                {f.none("None", ""), refused},
		"alg nOnE with a signature":               {f.none("nOnE", parts[2]), refused},
		"no alg":                                  {f.rs256(f.issuer, map[string]any{"alg": nil}, f.claims(nil)), refused},
		"alg that is no signature":                {f.none("RSA-OAEP", parts[2]), refused},
		"HS256 with the public key as PEM":        {f.hs256(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})), refused},
		"HS256 with the public key as DER":        {f.hs256(public), refused},
		"HS256 with the modulus":                  {f.hs256(f.issuer.N.Bytes()), refused},
		"HS256 with the published key set":        {f.hs256(set), refused},
		"HS256 with nothing":                      {f.hs256(nil), refused},
		"RS256 in the name of ES256":              {f.rs256(f.issuer, map[string]any{"alg": "ES256"}, f.claims(nil)), refused},
		"a key of their own under the real kid":   {f.rs256(f.mine, nil, f.claims(nil)), refused},
		"a kid that is a path":                    {f.rs256(f.mine, map[string]any{"kid": "../../../dev/null"}, f.claims(nil)), refused},
		"a kid that is SQL":                       {f.rs256(f.mine, map[string]any{"kid": "' or '1'='1"}, f.claims(nil)), refused},
		"a kid that is an address":                {f.rs256(f.mine, map[string]any{"kid": evil.URL}, f.claims(nil)), refused},
		"a kid that is empty":                     {f.rs256(f.mine, map[string]any{"kid": ""}, f.claims(nil)), refused},
		"a kid that is a list":                    {f.rs256(f.mine, map[string]any{"kid": []string{f.kid}}, f.claims(nil)), refused},
		"the address of a key set (jku)":          {f.rs256(f.mine, map[string]any{"jku": evil.URL}, f.claims(nil)), refused},
		"the address of a certificate (x5u)":      {f.rs256(f.mine, map[string]any{"x5u": evil.URL}, f.claims(nil)), refused},
		"a key of their own in the header (jwk)":  {f.rs256(f.mine, map[string]any{"jwk": mine, "kid": nil}, f.claims(nil)), refused},
		"a header that must be understood (crit)": {f.rs256(f.issuer, map[string]any{"crit": []string{"mine"}, "mine": 1}, f.claims(nil)), refused},
		"another's claims under a real signature": {parts[0] + "." + f.part(f.claims(map[string]any{"sub": "root"})) + "." + parts[2], refused},
		"a signature that was cut":                {valid[:len(valid)-4], refused},
		"no signature":                            {parts[0] + "." + parts[1] + ".", refused},
		"two parts":                               {parts[0] + "." + parts[1], refused},
		"four parts":                              {valid + "." + parts[2], refused},
		"a signature with something behind it":    {valid + "AAAA", refused},

		"no role":                              {roles(nil), powerless},
		"roles of a client, not of the realm":  {roles(map[string]any{"resource_access": map[string]any{"littoral": map[string]any{"roles": admin}}}), powerless},
		"roles in a claim of a person's own":   {roles(map[string]any{"profile": map[string]any{"roles": admin}}), powerless},
		"roles one floor deeper in the realm":  {roles(map[string]any{"realm_access": map[string]any{"realm_access": map[string]any{"roles": admin}}}), powerless},
		"a realm that is a list":               {roles(map[string]any{"realm_access": []any{map[string]any{"roles": admin}}}), powerless},
		"a realm in a text":                    {roles(map[string]any{"realm_access": `{"roles":["admin"]}`}), powerless},
		"ROLES in capitals":                    {roles(map[string]any{"ROLES": admin, "Roles": admin, "REALM_ACCESS": map[string]any{"roles": admin}}), powerless},
		"ROLES in capitals in the realm":       {roles(map[string]any{"realm_access": map[string]any{"Roles": admin}}), powerless},
		"roles with a dot in the name":         {roles(map[string]any{"realm_access.roles": admin}), powerless},
		"roles under an address":               {roles(map[string]any{"https://littoral.dev/roles": admin}), powerless},
		"roles in lists of lists":              {f.real(map[string]any{"roles": [][]string{admin}}), powerless},
		"roles as keys":                        {f.real(map[string]any{"roles": map[string]bool{"admin": true}}), powerless},
		"two roles in one text":                {f.real(map[string]any{"roles": "viewer admin"}), powerless},
		"a role with a space":                  {f.real(map[string]any{"roles": []string{" admin", "admin ", "admin\n", "Admin", "admin\x00"}}), powerless},
		"a role that is none":                  {f.real(map[string]any{"roles": []string{"open", "root", "*", ""}}), powerless},
		"a group called like a role":           {roles(map[string]any{"groups": admin}), powerless},
		"a scope called like a role":           {roles(map[string]any{"scope": "admin operator viewer", "scp": admin}), powerless},
		"roles that a second claim takes back": {f.rs256(f.issuer, nil, `{"roles":["admin"],`+strings.TrimPrefix(mustJSON(t, f.claims(map[string]any{"roles": []string{}})), "{")), powerless},
	}
	sealer, err := session.New(session.Config{Key: sessionKey})
	require.NoError(t, err)
	ways := map[string]func(r *http.Request, token string){
		"bearer": func(r *http.Request, token string) { r.Header.Set("Authorization", "Bearer "+token) },
		"cookie": func(r *http.Request, token string) {
			w := httptest.NewRecorder()
			require.NoError(t, sealer.Set(w, r, session.Session{Access: token, CSRF: "csrf", Began: time.Now()}))
			for _, c := range w.Result().Cookies() {
				r.AddCookie(c)
			}
			r.Header.Set("Origin", s.URL)
			r.Header.Set(session.CSRFHeader, "csrf")
		},
	}
	send := func(way func(*http.Request, string), method, path, token string) int {
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(""))
		require.NoError(t, err)
		way(r, token)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode
	}
	for by, way := range ways {
		require.Equal(t, http.StatusOK, send(way, http.MethodGet, "/jobmanager/groups", valid), "the valid one, by %s", by)
		require.Equal(t, http.StatusBadRequest, send(way, http.MethodPost, "/jobmanager/groups", valid), "the valid one, by %s", by)
		for name, row := range corpus {
			require.Equal(t, row.status, send(way, http.MethodGet, "/jobmanager/groups", row.token), "%s, by %s", name, by)
			require.Equal(t, row.status, send(way, http.MethodPost, "/jobmanager/groups", row.token), "%s, by %s", name, by)
		}
	}
	require.Zero(t, asked.Load(), "nobody fetches a key from where a token says")
	require.GreaterOrEqual(t, len(corpus), 50)
}

// TestACookieThatWasNotSealedHere: it counts as none.
func TestACookieThatWasNotSealedHere(t *testing.T) {
	t.Parallel()
	s := start(t, laptop)
	f := newForge(t, s)
	other, err := session.New(session.Config{Key: "another key of thirty-two letters"})
	require.NoError(t, err)
	sealer, err := session.New(session.Config{Key: sessionKey})
	require.NoError(t, err)
	it := session.Session{Access: f.real(nil), CSRF: "csrf", Began: time.Now()}
	foreign, err := other.Seal("session", it)
	require.NoError(t, err)
	login, err := sealer.Seal("login", it)
	require.NoError(t, err)
	it.Began = time.Now().Add(-session.Longest - time.Minute)
	old, err := sealer.Seal("session", it)
	require.NoError(t, err)
	for name, value := range map[string]string{
		"of another key": foreign, "sealed for another purpose": login, "of yesterday": old, "a token in the clear": f.real(nil),
		"nothing": "", "junk": "AAAA", "changed": "B" + foreign[1:],
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/jobmanager/groups", nil)
		require.NoError(t, err)
		r.Header.Set("Cookie", session.Cookie+"="+url.QueryEscape(value))
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusUnauthorized, answer.StatusCode, name)
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}
