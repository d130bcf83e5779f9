// Package peer calls other controllers: who they are, where, and with which tokens, is set, never learned from a lighthouse
// or from a call (shared/docs/controllers.md).
package peer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/credentials"
	"github.com/littoral-project/littoral/shared/problem"
)

// Config is read from the environment by envconfig.
type Config struct {
	Name       string        `envconfig:"CONTROLLER_NAME"`    // ours
	Address    string        `envconfig:"CONTROLLER_ADDRESS"` // the base URL at which others find us
	Lighthouse string        `envconfig:"LIGHTHOUSE"`         // base URL of the lighthouse; none = we are in no phone book
	Peers      string        `envconfig:"CONTROLLER_PEERS"`   // a JSON list of Peer
	Timeout    time.Duration `envconfig:"CONTROLLER_TIMEOUT" default:"5s"`
	Audience   string        `envconfig:"OIDC_AUDIENCE"` // of a peer that names no other
	credentials.Config
}

// Peer is another controller, and how it knows us: by a token from a file, or by client credentials of its own issuer, or
// else by those that we use everywhere (OIDC_CLIENT_ID).
type Peer struct {
	Name      string `json:"name"`
	Address   string `json:"address"`             // its base URL
	Subject   string `json:"subject,omitempty"`   // of the tokens that it calls us with; "" = any with the role controller
	Audience  string `json:"audience,omitempty"`  // of the tokens that it takes
	TokenFile string `json:"tokenFile,omitempty"` // holds one, and is kept fresh
	TokenURL  string `json:"tokenURL,omitempty"`
	ClientID  string `json:"clientID,omitempty"`
	Secret    string `json:"clientSecret,omitempty"`
}

// Client calls peers.
type Client struct {
	config Config
	peers  []Peer
	http   *http.Client
	own    *credentials.Source
	theirs map[string]*credentials.Source // by name
}

// Open reads the settings by config, which is that of a function's environment, and returns a client that calls by h.
func Open(config func(into any) error, h *http.Client) (*Client, error) {
	var c Config
	if err := config(&c); err != nil {
		return nil, err
	}
	return New(c, h)
}

// New checks the settings, and does not dial.
func New(c Config, h *http.Client) (*Client, error) {
	c.Address, c.Lighthouse = strings.TrimRight(c.Address, "/"), strings.TrimRight(c.Lighthouse, "/")
	client := &Client{config: c, http: h, own: credentials.New(c.Config, h), theirs: map[string]*credentials.Source{}}
	for name, address := range map[string]string{"CONTROLLER_ADDRESS": c.Address, "LIGHTHOUSE": c.Lighthouse} {
		if address != "" && !isBase(address) {
			return nil, fmt.Errorf("%s must be the base URL of a controller, as https://harbour.example", name)
		}
	}
	var err error
	if client.peers, err = read(c.Peers, c.Name); err != nil {
		return nil, err
	}
	for _, p := range client.peers {
		client.theirs[p.Name] = credentials.New(credentials.Config{
			ClientID: p.ClientID, ClientSecret: p.Secret, TokenURL: p.TokenURL, Scopes: c.Scopes,
		}, h)
	}
	return client, nil
}

// Known reads who the peers are, for whoever calls none: config is that of a function's environment.
func Known(config func(into any) error) ([]Peer, error) {
	var c struct {
		Name  string `envconfig:"CONTROLLER_NAME"`
		Peers string `envconfig:"CONTROLLER_PEERS"`
	}
	if err := config(&c); err != nil {
		return nil, err
	}
	return read(c.Peers, c.Name)
}

// read checks a list of peers of the controller of that name.
func read(list, ours string) (peers []Peer, err error) {
	if strings.TrimSpace(list) == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(list), &peers); err != nil {
		return nil, fmt.Errorf("CONTROLLER_PEERS is no JSON list of peers: %w", err)
	}
	seen := map[string]bool{}
	for i, p := range peers {
		p.Address = strings.TrimRight(p.Address, "/")
		peers[i] = p
		if p.Name == "" || !isBase(p.Address) || p.Name == ours {
			return nil, fmt.Errorf("CONTROLLER_PEERS[%d] needs a name other than ours, and the base URL as its address", i)
		}
		if seen[p.Name] {
			return nil, fmt.Errorf("CONTROLLER_PEERS[%d]: %q is there twice", i, p.Name)
		}
		seen[p.Name] = true
	}
	return peers, nil
}

func isBase(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// Name is ours.
func (c *Client) Name() string { return c.config.Name }

// Address is ours.
func (c *Client) Address() string { return c.config.Address }

// Lighthouse is the base URL of the lighthouse; "" if there is none.
func (c *Client) Lighthouse() string { return c.config.Lighthouse }

// Peers lists the peers, in the order of the setting.
func (c *Client) Peers() []Peer { return c.peers }

// Named returns the peer of the name. The error is NotFound.
func (c *Client) Named(name string) (Peer, error) {
	for _, p := range c.peers {
		if p.Name == name {
			return p, nil
		}
	}
	return Peer{}, problem.New(problem.NotFound, "%q is no controller that this one works with (CONTROLLER_PEERS)", problem.Brief(name, 100))
}

// Caller returns the peer of the name, if the subject of the caller's token is that of the peer. The error is Forbidden.
func (c *Client) Caller(name, subject string) (Peer, error) {
	p, err := c.Named(name)
	if err == nil && (p.Subject == "" || p.Subject == subject) {
		return p, nil
	}
	return Peer{}, problem.New(problem.Forbidden, "the caller is not the controller %q, or this one does not work with it", problem.Brief(name, 100))
}

// At returns the peer at the base URL; for any other address it is one that takes our own tokens.
func (c *Client) At(address string) Peer {
	for _, p := range c.peers {
		if p.Address == address {
			return p
		}
	}
	return Peer{Address: address}
}

const maxAnswer = 4 << 20 // bytes

// Call asks the peer. in and out are JSON, or nil. The error is the problem that the peer answered, else Unavailable: then
// nobody knows whether the peer did what was asked, and it is asked again.
func (c *Client) Call(ctx context.Context, p Peer, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("encode a call of %s: %w", p.Address, err)
		}
	}
	return c.send(ctx, p, method, path, "application/json", body, out)
}

// Post is Call with a body that is no JSON.
func (c *Client) Post(ctx context.Context, p Peer, path, media string, body []byte, out any) error {
	return c.send(ctx, p, http.MethodPost, path, media, body, out)
}

func (c *Client) send(ctx context.Context, p Peer, method, path, media string, body []byte, out any) error {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, p.Address+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("call %s: %w", p.Address, err)
	}
	req.Header.Set("Content-Type", media)
	req.Header.Set("Accept", "application/json")
	token, err := c.token(ctx, p)
	if err != nil {
		return err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return problem.Wrap(problem.Unavailable, err, "the controller at %s cannot be reached", p.Address)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err != nil:
		return problem.Wrap(problem.Unavailable, err, "the controller at %s broke off", p.Address)
	case resp.StatusCode/100 != 2:
		return refusal(p.Address, resp.StatusCode, answer)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return problem.Wrap(problem.Unavailable, err, "the controller at %s answered what is no JSON", p.Address)
	}
	return nil
}

// token returns what the peer knows us by; "" when we have none.
func (c *Client) token(ctx context.Context, p Peer) (string, error) {
	audience := cmp.Or(p.Audience, c.config.Audience)
	switch theirs := c.theirs[p.Name]; {
	case p.TokenFile != "":
		text, err := os.ReadFile(p.TokenFile)
		if err != nil {
			return "", problem.Wrap(problem.Unavailable, err, "the token for the controller %s cannot be read", p.Name)
		}
		return strings.TrimSpace(string(text)), nil
	case theirs != nil && theirs.Configured():
		return theirs.Token(ctx, audience)
	case c.own.Configured():
		return c.own.Token(ctx, audience)
	}
	return "", nil
}

// refusal is what a peer answered, as a problem of the same kind where that tells what to do next.
func refusal(address string, status int, answer []byte) error {
	var said struct {
		Detail string `json:"detail"`
	}
	text := problem.Brief(bytes.TrimSpace(answer), 300)
	if json.Unmarshal(answer, &said) == nil && said.Detail != "" {
		text = problem.Brief([]byte(said.Detail), 300)
	}
	kind := problem.Unavailable
	switch status {
	case http.StatusNotFound:
		kind = problem.NotFound
	case http.StatusConflict:
		kind = problem.Conflict
	case http.StatusForbidden, http.StatusUnauthorized:
		kind = problem.Forbidden
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		kind = problem.Invalid
	}
	return problem.New(kind, "the controller at %s answered %d: %s", address, status, text)
}
