package localpg

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrLocked means that another process holds a lock.
var ErrLocked = errors.New("is used by another process")

// Lock takes a lock that is released by Unlock or when this process ends, in whatever way. The error is ErrLocked if
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

// Unlock releases a lock and closes its file. Closing alone would leave the lock to a child process that is just being
// started, which has the file, too, until it becomes its program.
func Unlock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
