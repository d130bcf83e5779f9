//go:build unix && !linux

package localpg

import "syscall"

// endWithParent needs Linux. Elsewhere a server outlives a parent that was killed and is stopped by the next start.
func endWithParent(*syscall.SysProcAttr, syscall.Signal) {}

// serves reports whether the process is a Postgres that works in dir.
func serves(pid int, dir string) bool { return startedOn(pid, dir) }
