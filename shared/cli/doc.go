// Package cli is the command line of Littoral: what "littoral apply", "get", "explain" and the others do.
//
// Each command is a struct in a file of its own, cmd_<verb>.go, whose fields are its flags and whose Run does the work
// with a session: the client, the streams and the clock. Nothing here reads the process's environment or ends the
// process, so a test runs a command as a user does and sees its output and exit code.
package cli
