package issuer

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
)

// How long things last.
const (
	visitLasts   = 10 * time.Minute // from the request until somebody has signed in
	codeLasts    = time.Minute
	deviceLasts  = 10 * time.Minute
	deviceEvery  = time.Second // between two questions of a device
	refreshLasts = 30 * 24 * time.Hour
	signedIn     = 12 * time.Hour // here, so that a second client need not ask for a password
	mostVisits   = 10_000         // of a kind in memory; older ones are forgotten
)

// grant is what somebody allows a client.
type grant struct {
	Client  string    `json:"client"`
	User    string    `json:"user"`
	Scopes  []string  `json:"scopes"`
	Session string    `json:"sid"`
	At      time.Time `json:"at"` // when he signed in
	Expires time.Time `json:"exp"`
}

// asked is a request for a code that waits for somebody to sign in, or its code that waits to be exchanged.
type asked struct {
	grant

	request *oidc.AuthRequest
	used    bool
}

// device is a request of a device.
type device struct {
	grant

	code, userCode string
	polled         time.Time
	allowed        bool
	refused        bool
}

// visits are what is under way, in memory: after a restart people begin again. Refresh tokens are signed texts instead and
// outlive a restart, except that sessions which were ended before it are forgotten.
type visits struct {
	now func() time.Time

	mu      sync.Mutex
	waiting map[string]*asked  // by the id of the request
	codes   map[string]*asked  // by the code
	devices map[string]*device // by the device's code
	ended   map[string]time.Time
}

func random() string {
	raw := make([]byte, 24)
	_, _ = rand.Read(raw) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(raw)
}

// put adds to a map, and removes what has expired, or anything when there is too much.
func put[T any](m *map[string]T, key string, v T, over func(T) bool) {
	if *m == nil {
		*m = map[string]T{}
	}
	for k, old := range *m {
		if over(old) || len(*m) >= mostVisits {
			delete(*m, k)
		}
	}
	(*m)[key] = v
}

// await keeps a request and returns its id.
func (v *visits) await(r *oidc.AuthRequest) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	id := random()
	a := &asked{request: r, grant: grant{Client: r.ClientID, Scopes: r.Scopes, Expires: v.now().Add(visitLasts)}}
	put(&v.waiting, id, a, func(o *asked) bool { return v.now().After(o.Expires) })
	return id
}

// known reports whether somebody may sign in for the request.
func (v *visits) known(id string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	a, ok := v.waiting[id]
	return ok && v.now().Before(a.Expires)
}

// allow turns the request into a code for the user.
func (v *visits) allow(id, user, session string) (a *asked, code string, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	a, ok = v.waiting[id]
	if !ok || v.now().After(a.Expires) {
		return nil, "", false
	}
	delete(v.waiting, id)
	code = random()
	a.User, a.Session, a.At, a.Expires = user, session, v.now(), v.now().Add(codeLasts)
	put(&v.codes, code, a, func(o *asked) bool { return v.now().After(o.Expires.Add(codeLasts)) })
	return a, code, true
}

// redeem gives what the code stands for, once: a second time, the session that it gave is ended (RFC 9700 §4.10).
func (v *visits) redeem(code, client string) (*asked, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	a, ok := v.codes[code]
	switch {
	case !ok || a.Client != client || v.now().After(a.Expires):
		return nil, oidc.ErrInvalidGrant().WithDescription("there is no such code")
	case a.used:
		v.end(a.Session)
		return nil, oidc.ErrInvalidGrant().WithDescription("the code was used before")
	}
	a.used = true
	return a, nil
}

func (v *visits) end(session string) {
	put(&v.ended, session, v.now(), func(at time.Time) bool { return v.now().Sub(at) > refreshLasts })
}

// finish ends a session: its refresh tokens are worth nothing any more.
func (v *visits) finish(session string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.end(session)
}

func (v *visits) over(session string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, over := v.ended[session]
	return over
}

// letters of user codes: no vowels, so that they spell no words, and no two that look alike (RFC 8628 §6.1).
const letters = "BCDFGHJKLMNPQRSTVWXZ"

// begin keeps the request of a device.
func (v *visits) begin(client string, scopes []string) *device {
	raw := make([]byte, 8)
	_, _ = rand.Read(raw) // see random
	for i := range raw {
		raw[i] = letters[int(raw[i])%len(letters)]
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	d := &device{
		code: random(), userCode: string(raw[:4]) + "-" + string(raw[4:]),
		grant: grant{Client: client, Scopes: scopes, Session: random(), Expires: v.now().Add(deviceLasts)},
	}
	put(&v.devices, d.code, d, func(o *device) bool { return v.now().After(o.Expires) })
	return d
}

// decide lets a person allow or refuse the device with the code that he typed.
func (v *visits) decide(userCode, user string, allow bool) bool {
	userCode = strings.ToUpper(strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return -1
		}
		return r
	}, userCode))
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, d := range v.devices {
		if strings.ReplaceAll(d.userCode, "-", "") == userCode && v.now().Before(d.Expires) && !d.allowed && !d.refused {
			d.User, d.At, d.allowed, d.refused = user, v.now(), allow, !allow
			return true
		}
	}
	return false
}

// poll answers a device that asks whether it was allowed.
func (v *visits) poll(code, client string) (grant, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	d, ok := v.devices[code]
	switch {
	case !ok || d.Client != client:
		return grant{}, oidc.ErrInvalidGrant().WithDescription("there is no such device code")
	case v.now().After(d.Expires):
		delete(v.devices, code)
		return grant{}, oidc.ErrExpiredDeviceCode()
	case d.refused:
		delete(v.devices, code)
		return grant{}, oidc.ErrAccessDenied().WithDescription("the person refused")
	case d.allowed:
		delete(v.devices, code)
		return d.grant, nil
	case v.now().Sub(d.polled) < deviceEvery/2:
		return grant{}, oidc.ErrSlowDown()
	}
	d.polled = v.now()
	return grant{}, oidc.ErrAuthorizationPending()
}

var errSigned = errors.New("it was not signed here, or has expired")

// sign makes a text that only this issuer can make, for a purpose.
func (i *Issuer) seal(purpose string, g grant) string {
	text, err := json.Marshal(g)
	if err != nil {
		panic(err) // texts and times always encode
	}
	return base64.RawURLEncoding.EncodeToString(text) + "." + base64.RawURLEncoding.EncodeToString(i.mac(purpose, text))
}

func (i *Issuer) mac(purpose string, text []byte) []byte {
	mac := hmac.New(sha256.New, i.key.seed)
	mac.Write([]byte(purpose + "\x00"))
	mac.Write(text)
	return mac.Sum(nil)
}

// unseal reads a text of seal, if it has not expired and its session has not ended.
func (i *Issuer) unseal(purpose, sealed string) (g grant, err error) {
	body, sum, _ := strings.Cut(sealed, ".")
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return g, errSigned
	}
	given, err := base64.RawURLEncoding.DecodeString(sum)
	if err != nil || !hmac.Equal(given, i.mac(purpose, text)) {
		return g, errSigned
	}
	if err := json.Unmarshal(text, &g); err != nil || i.options.Now().After(g.Expires) || i.visits.over(g.Session) {
		return grant{}, errSigned
	}
	return g, nil
}
