package roles

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// iterations are as many as Postgres takes by default.
const iterations = 4096

// Verifier returns what Postgres keeps of a password (SCRAM-SHA-256, RFC 5803), by which a login can be checked but not made. The
// password must be printable ASCII, which SASLprep leaves as it is.
func Verifier(password string) (string, error) {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // it never fails
	return verifier(password, salt)
}

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
