package auth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"

	"github.com/littoral-project/littoral/shared/problem"
)

// How long what the issuer said about its keys holds. A key that it takes back is refused after keysFresh, unless the
// issuer is away.
const (
	keysFresh = 5 * time.Minute
	keysHold  = time.Hour        // while the issuer cannot be reached
	askAgain  = 10 * time.Second // at the earliest, for an unknown key id or after a failure
)

// How long the issuer may take to answer. An hour's keys are no help to a call whose own time is over.
const (
	answerFirst = 8 * time.Second
	answerHeld  = 2 * time.Second // while what it said before can be used
)

// storeWithin is how long the store may take to answer. If it hangs, a call that does not need it must not hang too.
const storeWithin = 3 * time.Second

// KeyStore shares the issuer's keys among all instances: a new one finds them in the store, which it uses anyway, and
// hundreds that start at once do not all ask the issuer.
type KeyStore interface {
	// IssuerKeys returns the JSON Web Key Set as the issuer gave it, and how long ago; nil when there is none.
	IssuerKeys(ctx context.Context, issuer string) (set []byte, age time.Duration, err error)
	// SaveIssuerKeys stores what the issuer has just given.
	SaveIssuerKeys(ctx context.Context, issuer string, set []byte) error
}

// keys is the oidc.KeySet of one issuer, from memory, the KeyStore or the issuer, in this order.
type keys struct {
	config Config
	http   *http.Client
	store  KeyStore // nil asks the issuer only

	asking chan struct{} // held while asking the issuer; tokens with a known key do not wait for it
	asked  time.Time     // when this process asked last
	away   error         // why that gave nothing

	mu    sync.Mutex // of what is known
	set   jose.JSONWebKeySet
	given time.Time // when the issuer gave the set
}

func newKeys(c Config, h *http.Client, store KeyStore) *keys {
	return &keys{config: c, http: h, store: store, asking: make(chan struct{}, 1)}
}

// VerifySignature returns the payload of a token signed by the issuer. The error is Unavailable when its keys cannot be had.
func (k *keys) VerifySignature(ctx context.Context, token *jose.JSONWebSignature) ([]byte, error) {
	id, algorithm := oidc.GetKeyIDAndAlg(token)
	key, err := k.find(ctx, id, algorithm)
	if err != nil {
		return nil, err
	}
	return token.Verify(&key)
}

func (k *keys) find(ctx context.Context, id, algorithm string) (jose.JSONWebKey, error) {
	begin := time.Now()
	if key, err := k.known(keysFresh, id, algorithm); err == nil {
		return key, nil
	}
	select {
	case k.asking <- struct{}{}:
		defer func() { <-k.asking }()
	case <-ctx.Done():
		return jose.JSONWebKey{}, problem.Wrap(problem.Unavailable, ctx.Err(), "the token issuer does not answer in time")
	}
	if key, err := k.known(keysFresh, id, algorithm); err == nil {
		return key, nil
	}
	stored := k.recall(ctx)
	if key, err := k.known(keysFresh, id, algorithm); err == nil {
		return key, nil
	}
	// If another goroutine asked while this one waited, use that answer.
	if held := k.age() <= keysHold; !k.asked.After(begin) && !(held && time.Since(k.asked) < askAgain) {
		k.ask(ctx, held, stored)
	}
	key, err := k.known(keysHold, id, algorithm)
	if err != nil && k.away != nil {
		return key, problem.Wrap(problem.Unavailable, k.away, "the token issuer cannot be reached")
	}
	return key, err
}

// known finds the key in a set that was given within the time.
func (k *keys) known(within time.Duration, id, algorithm string) (jose.JSONWebKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.given) > within {
		return jose.JSONWebKey{}, oidc.ErrKeyNone
	}
	return oidc.FindMatchingKey(id, oidc.KeyUseSignature, algorithm, k.set.Keys...)
}

func (k *keys) age() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Since(k.given)
}

// update stores the set when it is newer than the one at hand.
func (k *keys) update(set jose.JSONWebKeySet, given time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if given.After(k.given) {
		k.set, k.given = set, given
	}
}

// recall takes the set from the store if that is newer. A store that is away is no reason to refuse anybody; answers
// reports whether there is one that is not.
func (k *keys) recall(ctx context.Context) (answers bool) {
	if k.store == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	text, age, err := k.store.IssuerKeys(ctx, k.name())
	if err != nil || text == nil {
		return err == nil
	}
	var set keySet
	if json.Unmarshal(text, &set) == nil {
		k.update(jose.JSONWebKeySet(set), time.Now().Add(-age))
	}
	return true
}

// ask gets the set from the issuer, and stores it if the store answers. A caller who hangs up meanwhile does not count as
// a failure of the issuer.
func (k *keys) ask(ctx context.Context, held, stored bool) {
	patience := answerFirst
	if held {
		patience = answerHeld
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	text, set, err := k.fetch(ctx)
	k.asked, k.away = time.Now(), err
	if err != nil {
		return
	}
	k.update(jose.JSONWebKeySet(set), time.Now())
	if stored {
		_ = k.store.SaveIssuerKeys(ctx, k.name(), text) // otherwise the next instance asks the issuer
	}
}

func (k *keys) fetch(ctx context.Context) (text []byte, set keySet, err error) {
	url := k.config.JWKSURL
	if url == "" {
		var found oidc.DiscoveryConfiguration
		if _, err := k.get(ctx, strings.TrimSuffix(k.config.Issuer, "/")+oidc.DiscoveryEndpoint, &found); err != nil {
			return nil, set, err
		}
		if found.Issuer != k.config.Issuer {
			return nil, set, fmt.Errorf("the issuer %s calls itself %s", k.config.Issuer, found.Issuer)
		}
		url = found.JwksURI
	}
	text, err = k.get(ctx, url, &set)
	return text, set, err
}

// keySet is a JSON Web Key Set without the keys that we do not understand, which an issuer may have for others (RFC
// 7517, section 5).
type keySet jose.JSONWebKeySet

func (s *keySet) UnmarshalJSON(text []byte) error {
	var raw struct{ Keys []json.RawMessage }
	if err := json.Unmarshal(text, &raw); err != nil {
		return err
	}
	for _, one := range raw.Keys {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(one) == nil {
			s.Keys = append(s.Keys, key)
		}
	}
	return nil
}

func (k *keys) name() string { return cmp.Or(k.config.JWKSURL, k.config.Issuer) }

func (k *keys) get(ctx context.Context, url string, into any) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := k.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", url, err)
	}
	return text, nil
}
