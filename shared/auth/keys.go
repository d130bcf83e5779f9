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
	askAgain  = 10 * time.Second // at the earliest, for a key id that nobody knows
)

// KeyStore shares the issuer's keys among all instances: one that has just started finds them where it must go anyway, and
// hundreds that start at once do not all ask the issuer.
type KeyStore interface {
	// IssuerKeys returns the JSON Web Key Set as the issuer gave it, and how long ago; nil when there is none.
	IssuerKeys(ctx context.Context, issuer string) (set []byte, age time.Duration, err error)
	// KeepIssuerKeys stores what the issuer has just given.
	KeepIssuerKeys(ctx context.Context, issuer string, set []byte) error
}

// keys is the oidc.KeySet of one issuer, from memory, the KeyStore or the issuer, in this order.
type keys struct {
	config Config
	http   *http.Client
	store  KeyStore // nil asks the issuer only

	mu    sync.Mutex
	set   jose.JSONWebKeySet
	given time.Time // when the issuer gave the set
	asked time.Time // when this process asked last
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
	k.mu.Lock()
	defer k.mu.Unlock()
	known := func(within time.Duration) (jose.JSONWebKey, error) {
		if time.Since(k.given) > within {
			return jose.JSONWebKey{}, oidc.ErrKeyNone
		}
		return oidc.FindMatchingKey(id, oidc.KeyUseSignature, algorithm, k.set.Keys...)
	}
	if key, err := known(keysFresh); err == nil {
		return key, nil
	}
	k.recall(ctx)
	if key, err := known(keysFresh); err == nil {
		return key, nil
	}
	away := k.ask(ctx)
	key, err := known(keysHold)
	if err != nil && away != nil {
		return key, problem.Wrap(problem.Unavailable, away, "the token issuer cannot be reached")
	}
	return key, err
}

// recall takes the set of the store when that is the newer one. A store that is away is no reason to refuse anybody.
func (k *keys) recall(ctx context.Context) {
	if k.store == nil {
		return
	}
	text, age, err := k.store.IssuerKeys(ctx, k.name())
	given := time.Now().Add(-age)
	var set jose.JSONWebKeySet
	if err == nil && text != nil && given.After(k.given) && json.Unmarshal(text, &set) == nil {
		k.set, k.given = set, given
	}
}

// ask gets the set from the issuer, unless it was asked just now and answered.
func (k *keys) ask(ctx context.Context) error {
	if time.Since(k.asked) < askAgain {
		return nil
	}
	url := k.config.JWKSURL
	if url == "" {
		var found oidc.DiscoveryConfiguration
		if _, err := k.get(ctx, strings.TrimSuffix(k.config.Issuer, "/")+oidc.DiscoveryEndpoint, &found); err != nil {
			return err
		}
		if found.Issuer != k.config.Issuer {
			return fmt.Errorf("the issuer %s calls itself %s", k.config.Issuer, found.Issuer)
		}
		url = found.JwksURI
	}
	var set jose.JSONWebKeySet
	text, err := k.get(ctx, url, &set)
	if err != nil {
		return err
	}
	k.set, k.given, k.asked = set, time.Now(), time.Now()
	if k.store != nil {
		_ = k.store.KeepIssuerKeys(ctx, k.name(), text) // the next instance asks the issuer then
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
