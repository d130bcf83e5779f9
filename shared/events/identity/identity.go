// Package identity proves and checks who sends events, for clusters with Knative's feature authentication-oidc: there a
// Broker accepts events only with a token for it, and delivers them with a token of the Trigger's own ServiceAccount.
//
// The tokens belong to ServiceAccounts of the cluster (https://knative.dev/docs/eventing/features/sender-identity/).
// Ours are in a volume, which knative/authentication adds to each function:
//
//	broker    for the Broker
//	api       for the API server, which is asked for the keys that all tokens are signed with
//	ca.crt    the authorities of the API server
//
// They are renewed there, so they are read whenever they are needed. Without the volume this package does nothing: then
// only the signature (events.Signed), which is checked in any case, proves that an event is ours.
package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"golang.org/x/oauth2"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/problem"
)

// Config is read from the environment by envconfig.
type Config struct {
	Dir      string `envconfig:"KNATIVE_TOKENS"`                             // where the volume is; empty = the feature is off
	Audience string `envconfig:"KNATIVE_AUDIENCE" default:"littoral-events"` // that Triggers and sources name for us
	Host     string `envconfig:"KUBERNETES_SERVICE_HOST"`
	Port     string `envconfig:"KUBERNETES_SERVICE_PORT"`
}

// Files of the volume.
const (
	brokerFile = "broker"
	apiFile    = "api"
	caFile     = "ca.crt"
)

// keysPath is where an API server has the keys of its ServiceAccounts' tokens, in a JSON Web Key Set.
const keysPath = "/openid/v1/jwks"

const outbound = 5 * time.Second // of a question for the keys

// Tokens identify this process to others. A nil one adds nothing and checks nothing.
type Tokens struct {
	config Config
	issuer string // of all tokens of the cluster
	prefix string // of the subjects of the namespace's own ServiceAccounts
	trust  *x509.CertPool
}

// Open reads who this process is; it returns nil when the feature is off. Nothing is dialled.
func Open(c Config) (*Tokens, error) {
	if c.Dir == "" {
		return nil, nil // a nil one is what there is then
	}
	t := &Tokens{config: c, trust: x509.NewCertPool()}
	authorities, err := os.ReadFile(filepath.Join(c.Dir, caFile))
	if err != nil {
		return nil, fmt.Errorf("KNATIVE_TOKENS: %w", err)
	}
	if !t.trust.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("KNATIVE_TOKENS: %s holds no certificate", caFile)
	}
	token, err := t.read(apiFile)
	if err != nil {
		return nil, fmt.Errorf("KNATIVE_TOKENS: %w", err)
	}
	// The kubelet has put the token there, so its issuer and subject can be trusted without checking the signature.
	var own oidc.TokenClaims
	if _, err := oidc.ParseToken(token, &own); err != nil {
		return nil, fmt.Errorf("KNATIVE_TOKENS: %s: %w", apiFile, err)
	}
	at := strings.LastIndex(own.Subject, ":")
	if !strings.HasPrefix(own.Subject, "system:serviceaccount:") || own.Issuer == "" {
		return nil, fmt.Errorf("KNATIVE_TOKENS: %s is not the token of a ServiceAccount", apiFile)
	}
	t.issuer, t.prefix = own.Issuer, own.Subject[:at+1]
	return t, nil
}

func (t *Tokens) read(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(t.config.Dir, name))
	return strings.TrimSpace(string(text)), err
}

// Transport puts the token for the Broker on each request.
func (t *Tokens) Transport(next http.RoundTripper) http.RoundTripper {
	if t == nil {
		return next
	}
	return &oauth2.Transport{Source: source{t, brokerFile}, Base: next}
}

// source is a file of the volume, as it is at the moment.
type source struct {
	tokens *Tokens
	file   string
}

// Token implements oauth2.TokenSource.
func (s source) Token() (*oauth2.Token, error) {
	token, err := s.tokens.read(s.file)
	return &oauth2.Token{AccessToken: token}, err
}

// Deliveries checks the tokens of deliveries. A nil one accepts all.
type Deliveries struct {
	prefix   string
	verifier *auth.Verifier
}

// Deliveries returns the check for deliveries to this process, which uses the keys of the store or the API server.
func (t *Tokens) Deliveries(store auth.KeyStore) *Deliveries {
	if t == nil {
		return nil
	}
	api := &http.Client{
		Timeout: outbound,
		Transport: &oauth2.Transport{Source: source{t, apiFile}, Base: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: t.trust, MinVersion: tls.VersionTLS12},
		}},
	}
	keys := "https://" + net.JoinHostPort(t.config.Host, t.config.Port) + keysPath
	return &Deliveries{t.prefix, auth.NewVerifier(auth.Config{
		Issuer: t.issuer, Audience: t.config.Audience, JWKSURL: keys,
	}, api, store)}
}

var errStranger = errors.New("the sender is of another namespace")

// Check refuses a delivery without a token for us, or with one from outside our namespace, in which the identities of
// Triggers and sources are. The error is Unauthenticated or Forbidden, or Unavailable when the keys cannot be had.
func (d *Deliveries) Check(r *http.Request) error {
	if d == nil {
		return nil
	}
	sender, err := d.verifier.Bearer(r)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(sender.Subject, d.prefix) {
		return problem.Wrap(problem.Forbidden, errStranger, "events are not taken from %s", sender.Subject)
	}
	return nil
}
