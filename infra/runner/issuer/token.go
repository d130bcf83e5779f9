package issuer

import (
	"cmp"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/zitadel/oidc/v3/pkg/crypto"
	"github.com/zitadel/oidc/v3/pkg/oidc"
)

// sign makes an access token for c in the form of RFC 9068, with the two claims that Littoral reads and those of the
// client. The default audience is Littoral.
func (i *Issuer) sign(c Client, audiences []string) (string, time.Time, error) {
	if len(audiences) == 0 {
		audiences = []string{i.options.Audience}
	}
	now := i.options.Now()
	expires := now.Add(Lifetime)
	private := map[string]any{}
	for name, value := range c.Claims {
		private[name] = value
	}
	private["roles"] = c.Roles
	if c.AgentID != "" {
		private["icos_agent_id"] = c.AgentID
	}
	if c.through != "" {
		private["preferred_username"] = c.ID
	}
	token, err := crypto.Sign(&oidc.AccessTokenClaims{
		TokenClaims: oidc.TokenClaims{
			Issuer:     i.options.URL,
			Subject:    c.ID,
			Audience:   audiences,
			ClientID:   cmp.Or(c.through, c.ID),
			IssuedAt:   oidc.FromTime(now),
			NotBefore:  oidc.FromTime(now),
			Expiration: oidc.FromTime(expires),
			JWTID:      uuid.NewString(),
		},
		Claims: private,
	}, i.signer)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("issuer: sign a token for %q: %w", c.ID, err)
	}
	return token, expires, nil
}
