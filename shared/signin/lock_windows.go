package signin

import (
	"os"

	"golang.org/x/sys/windows"
)

// lock waits until no other process has the file locked, and locks it until it is closed.
func lock(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, new(windows.Overlapped))
}
