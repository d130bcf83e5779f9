package roles

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"
)

// The password and salt of the example in RFC 7677.
func TestVerifier(t *testing.T) {
	t.Parallel()
	salt, err := base64.StdEncoding.DecodeString("W22ZaJ0SNY7soEsUEjb6gQ==")
	require.NoError(t, err)
	text, err := verifier("pencil", salt)
	require.NoError(t, err)
	require.Equal(t, "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$"+
		"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=", text)
}

func TestVerifier_refusesWhatItCannotKeep(t *testing.T) {
	t.Parallel()
	for _, password := range []string{"", "pa\nss", "pässword"} {
		_, err := verifier(password, nil)
		require.Error(t, err, "%q", password)
	}
}
