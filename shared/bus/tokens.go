package bus

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/bus/keyexpr"
	"github.com/littoral-project/littoral/shared/problem"
)

// Tokens makes and checks the tokens of applications. Such a token names an application and is signed with a key of ours, so
// none has to be stored, and it is the same each time. A new key makes all former tokens invalid. Tokens is read from the
// settings; without a key there are no such tokens.
type Tokens struct {
	Key    string `envconfig:"BUS_TOKEN_KEY"`
	Former string `envconfig:"BUS_TOKEN_KEY_FORMER"` // also accepted, while the key is being changed
}

const tokenPrefix = "app."

// For returns the token of an application, by its instance; "" without a key.
func (t Tokens) For(instance string) string {
	if t.Key == "" {
		return ""
	}
	return tokenPrefix + encode([]byte(instance)) + "." + encode(sign(t.Key, instance))
}

// Recognize knows an application by its token.
func (t Tokens) Recognize(r *http.Request) (auth.Principal, bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	rest, is := strings.CutPrefix(strings.TrimSpace(token), tokenPrefix)
	if !is || !strings.EqualFold(scheme, "Bearer") {
		return auth.Principal{}, false
	}
	name, mac, _ := strings.Cut(rest, ".")
	instance, err := base64.RawURLEncoding.DecodeString(name)
	if err != nil || len(instance) == 0 {
		return auth.Principal{}, false
	}
	signed, err := base64.RawURLEncoding.DecodeString(mac)
	if err != nil {
		return auth.Principal{}, false
	}
	for _, key := range []string{t.Key, t.Former} {
		if key != "" && hmac.Equal(signed, sign(key, string(instance))) {
			return auth.Principal{
				Subject: "application " + string(instance), Roles: []auth.Role{auth.Viewer}, Application: string(instance),
			}, true
		}
	}
	return auth.Principal{}, false
}

// Permit checks that the caller may read the selection: an application reads the keys below its instance.
func Permit(caller auth.Principal, selection keyexpr.Expr) error {
	if caller.Application == "" {
		return nil
	}
	key, err := keyexpr.ParseKey(caller.Application) // without wildcards
	if err != nil || !(key + "/**").Includes(selection) {
		return problem.New(problem.Forbidden, "this token may read %s/** and nothing else", caller.Application)
	}
	return nil
}

func sign(key, instance string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte("bus token of application " + instance))
	return mac.Sum(nil)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
