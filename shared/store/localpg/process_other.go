//go:build unix && !linux

package localpg

import "syscall"

// endWithParent needs Linux. Elsewhere a server outlives a killed parent and is stopped by the next start.
func endWithParent(*syscall.SysProcAttr, syscall.Signal) {}

// serves reports whether the process is a Postgres that runs in dir.
func serves(pid int, dir string) bool { return startedOn(pid, dir) }
