//go:build unix

package signin

import (
	"os"
	"syscall"
)

// lock waits until no other process has the file locked, and locks it until it is closed.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }
