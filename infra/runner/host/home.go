package host

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/durable"
	"github.com/littoral-project/littoral/shared/store/localpg"
)

// home is the directory of all state. Only one host at a time may use it.
type home struct {
	dir  string
	lock *os.File
}

func openHome(dir string) (*home, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	// The directory is readable by others, since Postgres may run as another user; each secret in it has its own
	// permissions.
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("home: %w", err)
	}
	path := filepath.Join(dir, "lock")
	lock, err := localpg.Lock(path)
	if errors.Is(err, localpg.ErrLocked) {
		by := ""
		if pid, err := os.ReadFile(path); err == nil && len(pid) > 0 {
			by = fmt.Sprintf(" (pid %s)", strings.TrimSpace(string(pid)))
		}
		return nil, fmt.Errorf("another littoral-up%s uses %s; stop it, or give this one another: --home DIR", by, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("home: %w", err)
	}
	if err := lock.Truncate(0); err == nil {
		_, _ = fmt.Fprintln(lock, os.Getpid()) // for the message above
	}
	return &home{dir: dir, lock: lock}, nil
}

func (h *home) close() error { return localpg.Unlock(h.lock) }

// writeAddress tells the command line where the host serves, until it stops.
func (h *Host) writeAddress() error {
	path := filepath.Join(h.home.dir, api.AddressFile)
	if err := durable.WriteFile(path, []byte(h.url+"\n"), 0o644); err != nil {
		return fmt.Errorf("address: %w", err)
	}
	h.onStop(func(context.Context) error {
		_ = os.Remove(path)
		return nil
	})
	return nil
}

// secret returns the content of a file, which is filled with random bytes on the first run.
func (h *home) secret(name string) (string, error) {
	path := filepath.Join(h.dir, name)
	text, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSpace(string(text)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails since Go 1.24
	made := hex.EncodeToString(random)
	return made, durable.WriteFile(path, []byte(made+"\n"), 0o600)
}
