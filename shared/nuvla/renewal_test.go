package nuvla

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestASessionIsRenewedBeforeItEnds, by what its cookie says of its life.
func TestASessionIsRenewedBeforeItEnds(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for after, cookie := range map[time.Duration]*http.Cookie{
		9 * time.Minute:  {MaxAge: 600, Expires: now.Add(time.Hour)},
		18 * time.Minute: {Expires: now.Add(20 * time.Minute)},
		54 * time.Minute: {},
	} {
		require.Equal(t, after, renewal(cookie, now).Sub(now))
	}
}
