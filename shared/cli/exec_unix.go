//go:build unix

package cli

import "syscall"

// become replaces this process with the program, so signals reach it as if it had been started itself.
var become = syscall.Exec
