// Command verifier reads a password and writes what Postgres and PgBouncer keep of it: the verifier of SCRAM-SHA-256
// (RFC 5803), with which a login can be checked but not made.
//
// Given the password itself, PgBouncer derives the verifier anew at each login, 3 ms of processor time; and both must
// hold the same one, salt included, for PgBouncer to hand on logins to Postgres. So it is made once, for both.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/littoral-project/littoral/shared/roles"
)

func main() {
	password, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "verifier:", err)
		os.Exit(1)
	}
	text, err := roles.Verifier(string(bytes.TrimSuffix(password, []byte("\n"))))
	if err != nil {
		fmt.Fprintln(os.Stderr, "verifier:", err)
		os.Exit(1)
	}
	fmt.Println(text)
}
