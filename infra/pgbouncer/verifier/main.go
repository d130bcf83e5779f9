// Command verifier reads a password and writes what Postgres and PgBouncer keep of it: the verifier of SCRAM-SHA-256
// (RFC 5803), with which a login can be checked but not made.
//
// Given the password itself, PgBouncer derives the verifier anew at each login, 3 ms of processor time; and both must
// hold the same one, salt included, for PgBouncer to hand on logins to Postgres. So it is made once, for both.
package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"os"
)

// iterations are as many as Postgres takes by default.
const iterations = 4096

func main() {
	password, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "verifier:", err)
		os.Exit(1)
	}
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // it never fails
	text, err := verifier(string(bytes.TrimSuffix(password, []byte("\n"))), salt)
	if err != nil {
		fmt.Fprintln(os.Stderr, "verifier:", err)
		os.Exit(1)
	}
	fmt.Println(text)
}

// verifier returns the text that Postgres has in pg_authid. The password must be printable ASCII, which SASLprep leaves
// as it is.
func verifier(password string, salt []byte) (string, error) {
	for _, c := range []byte(password) {
		if c < ' ' || c > '~' {
			return "", fmt.Errorf("the password has the byte %#x; only printable ASCII is taken", c)
		}
	}
	if password == "" {
		return "", fmt.Errorf("the password is empty")
	}
	salted, err := pbkdf2.Key(sha256.New, password, salt, iterations, sha256.Size)
	if err != nil {
		return "", err
	}
	stored := sha256.Sum256(sign(salted, "Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s",
		iterations, encode(salt), encode(stored[:]), encode(sign(salted, "Server Key"))), nil
}

func sign(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
