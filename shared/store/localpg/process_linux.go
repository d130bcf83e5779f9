package localpg

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// endWithParent makes the kernel send the signal to the program when its parent dies, in whatever way.
func endWithParent(a *syscall.SysProcAttr, signal syscall.Signal) { a.Pdeathsig = signal }

// serves reports whether the process is a Postgres with dir as its working directory, which is the data directory of
// every server.
func serves(pid int, dir string) bool {
	cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return false
	}
	real, err := filepath.EvalSymlinks(dir)
	return err == nil && cwd == real
}
