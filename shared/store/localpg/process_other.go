//go:build unix && !linux

package localpg

import "syscall"

// endWithParent needs Linux. Elsewhere a server outlives a parent that was killed and is stopped by the next start.
func endWithParent(*syscall.SysProcAttr, syscall.Signal) {}

// serves reports whether the process lives; whether it is a Postgres cannot be seen here.
func serves(pid int, _ string) bool { return syscall.Kill(pid, 0) == nil }
