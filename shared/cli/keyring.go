package cli

import (
	"errors"
	"runtime"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/littoral-project/littoral/shared/signin"
)

// desktop is the keyring of the user's desktop: the Secret Service on D-Bus, the keychain of macOS, or the credentials of Windows.
type desktop struct{}

const (
	ringService  = "littoral"
	ringPatience = 30 * time.Second // a locked one asks the user for a password
)

var errSilent = errors.New("the keyring does not answer")

func patiently[T any](ask func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	got := make(chan answer, 1)
	go func() {
		v, err := ask()
		got <- answer{v, err}
	}()
	select {
	case a := <-got:
		return a.value, a.err
	case <-time.After(ringPatience):
		var none T
		return none, errSilent
	}
}

func (desktop) Get(name string) (string, error) {
	return patiently(func() (string, error) { return keyring.Get(ringService, name) })
}

func (desktop) Set(name, secret string) error {
	_, err := patiently(func() (struct{}, error) { return struct{}{}, keyring.Set(ringService, name, secret) })
	return err
}

func (desktop) Delete(name string) error {
	_, err := patiently(func() (struct{}, error) { return struct{}{}, keyring.Delete(ringService, name) })
	return err
}

// keys is the keyring, where the session has one: on Linux the address of its bus says so. LITTORAL_KEYRING=off keeps tokens in the
// file.
func (s *session) keys() signin.Keyring {
	switch {
	case s.getenv("LITTORAL_KEYRING") == "off":
		return nil
	case runtime.GOOS == "darwin" || runtime.GOOS == "windows" || s.getenv("DBUS_SESSION_BUS_ADDRESS") != "":
		return desktop{}
	}
	return nil
}
