package auth

import (
	"crypto/subtle"
	"net/http"
	"strings"
)

// Shared admits an Alertmanager that cannot get access tokens: it sends the secret as a bearer token or as the password
// of basic auth. It is read from the environment by envconfig; an empty secret admits nobody.
type Shared struct {
	Secret string `envconfig:"ALERTMANAGER_SECRET"`
}

// Recognize knows the Alertmanager by the secret.
func (s Shared) Recognize(r *http.Request) (Principal, bool) {
	sent := ""
	if _, password, ok := r.BasicAuth(); ok {
		sent = password
	} else if scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		sent = strings.TrimSpace(token)
	}
	if s.Secret == "" || subtle.ConstantTimeCompare([]byte(sent), []byte(s.Secret)) != 1 {
		return Principal{}, false
	}
	return Principal{Subject: "alertmanager", Roles: []Role{Alertmanager}}, true
}
