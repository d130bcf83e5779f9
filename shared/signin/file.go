package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/durable"
)

// File holds the logins of a user by server, with mode 0600, or says which of them the keyring of the desktop holds. Several
// commands may use it at once.
type File struct {
	Path string
	Keys Keyring // nil = there is none
}

// Keyring holds secrets of a user under names.
type Keyring interface {
	Get(name string) (string, error)
	Set(name, secret string) error
	Delete(name string) error
}

// entry is a login, or stands for one in the keyring.
type entry struct {
	*Login
	InKeyring bool `json:"inKeyring,omitempty"`
}

// soon is how long before its end a token is renewed.
const soon = 30 * time.Second

// Get returns the login for a server; nil when there is none.
func (f File) Get(server string) (*Login, error) {
	all, err := f.read()
	if err != nil {
		return nil, err
	}
	e := all[key(server)]
	if !e.InKeyring {
		return e.Login, nil
	}
	if f.Keys == nil {
		return nil, errors.New("logins: the tokens are in a keyring, and none answers here; sign in again with: littoral login")
	}
	secret, err := f.Keys.Get(key(server))
	if err != nil {
		return nil, fmt.Errorf("logins: the keyring has no tokens for %s; sign in again with littoral login: %w", server, err)
	}
	l := &Login{}
	if err := json.Unmarshal([]byte(secret), l); err != nil {
		return nil, fmt.Errorf("logins: what the keyring holds for %s cannot be read: %w", server, err)
	}
	return l, nil
}

// Where says where the login for a server is, or would be.
func (f File) Where(server string) string {
	if all, err := f.read(); err == nil && all[key(server)].InKeyring {
		return "the keyring"
	}
	return f.Path
}

func key(server string) string { return strings.TrimRight(server, "/") }

func (f File) read() (map[string]entry, error) {
	all := map[string]entry{}
	if f.Path == "" {
		return all, nil
	}
	info, err := os.Stat(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, fmt.Errorf("logins: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("logins: others can read %s: chmod 600 it, and sign in anew if somebody may have", f.Path)
	}
	text, err := os.ReadFile(f.Path)
	if err != nil {
		return nil, fmt.Errorf("logins: %w", err)
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("logins: %s cannot be read: %w", f.Path, err)
	}
	return all, nil
}

// Set keeps a login; nil removes it.
func (f File) Set(server string, l *Login) error {
	return f.locked(func() error { return f.set(server, l) })
}

func (f File) set(server string, l *Login) error {
	all, err := f.read()
	if err != nil {
		return err
	}
	was := all[key(server)]
	switch {
	case l == nil:
		delete(all, key(server))
	case f.kept(server, l):
		all[key(server)] = entry{InKeyring: true}
	default:
		all[key(server)] = entry{Login: l}
	}
	if was.InKeyring && !all[key(server)].InKeyring && f.Keys != nil {
		_ = f.Keys.Delete(key(server)) // nothing points to it any more
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(f.Path, append(text, '\n'), 0o600)
}

// kept reports whether the keyring has taken the login. One that does not answer is no fault: then the file holds it.
func (f File) kept(server string, l *Login) bool {
	if f.Keys == nil {
		return false
	}
	text, err := json.Marshal(l)
	return err == nil && f.Keys.Set(key(server), string(text)) == nil
}

// locked runs do while no other process does: two that refresh at once would use one refresh token twice, for which an
// issuer may end the session.
func (f File) locked(do func() error) error {
	if f.Path == "" {
		return errors.New("logins: there is no directory for them: set XDG_CONFIG_HOME or HOME")
	}
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
		return fmt.Errorf("logins: %w", err)
	}
	file, err := os.OpenFile(f.Path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("logins: %w", err)
	}
	defer func() { _ = file.Close() }() // which releases it
	if err := lock(file); err != nil {
		return fmt.Errorf("logins: lock: %w", err)
	}
	return do()
}

// Token returns an access token for the server, renewed when it is about to end.
func (f File) Token(ctx context.Context, h *http.Client, server string, now func() time.Time) (string, error) {
	l, err := f.Get(server)
	if err != nil || l == nil {
		return "", err
	}
	if fresh(l, now()) {
		return l.Access, nil
	}
	err = f.locked(func() error {
		if l, err = f.Get(server); err != nil { // another process may have renewed it
			return err
		}
		if l == nil {
			return ErrOver
		}
		if fresh(l, now()) {
			return nil
		}
		renewed, err := renew(ctx, h, l)
		if err != nil {
			return err
		}
		if renewed.Refresh == "" {
			renewed.Refresh = l.Refresh
		}
		l = renewed
		return f.set(server, l)
	})
	if err != nil {
		return "", err
	}
	return l.Access, nil
}

func fresh(l *Login, now time.Time) bool {
	return l.Expires.IsZero() || now.Add(soon).Before(l.Expires)
}
