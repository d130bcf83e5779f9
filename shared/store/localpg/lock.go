package localpg

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrLocked says that another process holds a lock.
var ErrLocked = errors.New("is used by another process")

// Lock takes a lock that ends with this process, however it ends, or with closing the file. The error is ErrLocked when
// another process holds it.
func Lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", path, ErrLocked)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}
