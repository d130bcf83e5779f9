// Package issuer is the OpenID Connect provider of the laptop host: real discovery, keys and tokens, so that functions
// check a laptop's callers with the very code that checks a Keycloak's.
//
// Machines get tokens by client credentials (RFC 6749 §4.4), people by a browser (authorization code with PKCE) or by a
// code that they type into one (device flow, RFC 8628), on plain pages of its own. The signing key lies in Dir and
// outlives the process, hence a token is good until it expires whatever happens to the host; the secrets of clients and
// the passwords of people follow from it. It is meant for laptops, tests and demos: whoever can read Dir can be anyone.
package issuer

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/op"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/littoral-project/littoral/shared/auth"
)

// Lifetime is how long an access token is valid.
const Lifetime = time.Hour

// Client is a client that may request tokens.
type Client struct {
	ID      string // client_id, and the subject of its tokens
	Roles   []auth.Role
	AgentID string            // claim "icos_agent_id": binds the token to one agent; empty for none
	Claims  map[string]string // further claims, such as the label that a gateway of telemetry puts on what the client sends

	through string // the client by which a person signed in; empty for a machine
}

// People returns the clients for people, scripts, Alertmanager and other controllers, each named after its only role.
func People() []Client {
	return []Client{
		{ID: "admin", Roles: []auth.Role{auth.Admin}},
		{ID: "operator", Roles: []auth.Role{auth.Operator}},
		{ID: "viewer", Roles: []auth.Role{auth.Viewer}},
		{ID: "agent", Roles: []auth.Role{auth.Agent}},
		{ID: "alertmanager", Roles: []auth.Role{auth.Alertmanager}},
		{ID: "controller", Roles: []auth.Role{auth.Controller}},
	}
}

// AgentClient returns the client of an agent. The prefix distinguishes an agent called "admin" from the person.
func AgentClient(agentID string) Client {
	return Client{ID: "agent:" + agentID, Roles: []auth.Role{auth.Agent}, AgentID: agentID}
}

// Options of an Issuer.
type Options struct {
	URL      string           // "iss" of the tokens, e.g. http://127.0.0.1:8080/oidc; Handler is mounted at its path
	Dir      string           // of the signing key; it is created if missing
	Audience string           // "aud" of the tokens
	Clients  []Client         // that may request tokens
	Users    []User           // who may sign in
	Console  []string         // base URLs of Littoral, whose console users may sign in to
	Now      func() time.Time // time.Now when nil
}

// Issuer makes and serves tokens.
type Issuer struct {
	options Options
	clients map[string]Client
	key     *signingKey
	signer  jose.Signer
	handler http.Handler
	visits  visits
}

// New reads the signing key of o.Dir, or creates one on the first run.
func New(o Options) (*Issuer, error) {
	if err := op.ValidateIssuer(o.URL, true); err != nil {
		return nil, fmt.Errorf("issuer %q: %w", o.URL, err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	clients := make(map[string]Client, len(o.Clients))
	for _, c := range o.Clients {
		if _, twice := clients[c.ID]; twice || c.ID == "" {
			return nil, fmt.Errorf("issuer: client id %q is empty or given twice", c.ID)
		}
		clients[c.ID] = c
	}
	key, err := loadKey(o.Dir)
	if err != nil {
		return nil, err
	}
	signer, err := op.SignerFromKey(key)
	if err != nil {
		return nil, fmt.Errorf("issuer: %w", err)
	}
	i := &Issuer{options: o, clients: clients, key: key, signer: signer}
	i.visits.now = o.Now
	i.handler = newHandler(i)
	return i, nil
}

// Handler serves discovery, keys and tokens below the path of Options.URL, which it expects in the request.
func (i *Issuer) Handler() http.Handler { return i.handler }

// Token returns an access token of the client, without a request, and its expiry.
func (i *Issuer) Token(_ context.Context, clientID string) (string, time.Time, error) {
	c, ok := i.clients[clientID]
	if !ok {
		known := slices.Sorted(maps.Keys(i.clients))
		return "", time.Time{}, fmt.Errorf("issuer: no client %q; there are %v", clientID, known)
	}
	return i.sign(c, nil)
}

// Credentials returns the client's credentials; the Client method of the result yields an http.Client that fetches,
// attaches and renews tokens like any OAuth 2.0 client.
func (i *Issuer) Credentials(clientID string) *clientcredentials.Config {
	return &clientcredentials.Config{
		ClientID:     clientID,
		ClientSecret: i.key.secret(clientID),
		TokenURL:     endpoints.Token.Absolute(i.options.URL),
	}
}
