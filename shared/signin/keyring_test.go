package signin_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/signin"
)

// ring is a keyring in memory, which may fall silent.
type ring struct {
	held   map[string]string
	silent error
}

func (r *ring) Get(name string) (string, error) {
	if _, there := r.held[name]; !there && r.silent == nil {
		return "", errors.New("it is not there")
	}
	return r.held[name], r.silent
}

func (r *ring) Set(name, secret string) error {
	if r.silent == nil {
		r.held[name] = secret
	}
	return r.silent
}

func (r *ring) Delete(name string) error { delete(r.held, name); return r.silent }

// TestTheKeyringHoldsTheTokensWhereOneAnswers; else the file does, and a login that the keyring has is not taken for none.
func TestTheKeyringHoldsTheTokensWhereOneAnswers(t *testing.T) {
	t.Parallel()
	const server = "https://littoral.example"
	keys := &ring{held: map[string]string{}}
	f := signin.File{Path: filepath.Join(t.TempDir(), "logins.json"), Keys: keys}
	text := func() string {
		body, err := os.ReadFile(f.Path)
		require.NoError(t, err)
		return string(body)
	}
	require.NoError(t, f.Set(server+"/", &signin.Login{Access: "secret-access", Refresh: "secret-refresh"}))
	require.NotContains(t, text(), "secret")
	require.Contains(t, keys.held[server], "secret-refresh")
	require.Equal(t, "the keyring", f.Where(server))
	l, err := f.Get(server)
	require.NoError(t, err)
	require.Equal(t, "secret-access", l.Access)

	keys.silent = errors.New("nobody is there")
	_, err = f.Get(server)
	require.ErrorContains(t, err, "littoral login")
	_, err = signin.File{Path: f.Path}.Get(server)
	require.ErrorContains(t, err, "none answers here")

	require.NoError(t, f.Set(server, &signin.Login{Access: "secret-again"}), "the file holds it then")
	require.Contains(t, text(), "secret-again")
	info, err := os.Stat(f.Path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.Equal(t, f.Path, f.Where(server))

	keys.silent = nil
	require.NoError(t, f.Set(server, &signin.Login{Access: "secret-access"}))
	require.NoError(t, f.Set(server, nil))
	require.Empty(t, keys.held)
	l, err = f.Get(server)
	require.NoError(t, err)
	require.Nil(t, l)
}
