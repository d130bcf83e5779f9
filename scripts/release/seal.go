package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// checksums is the file that the signature is over: who trusts it can check all the others.
const checksums = "SHA256SUMS"

// subject is a file that a statement is about.
type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// seal writes what is said about all files: the provenance, their checksums, and the signature of these.
func (r *release) seal(sign func([]byte) ([]byte, error)) error {
	subjects, err := r.subjects()
	if err != nil {
		return err
	}
	statement := map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": "https://slsa.dev/provenance/v1",
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType":          "https://" + ours + "/scripts/release/v1",
				"externalParameters": map[string]any{"version": r.version, "overlays": r.overlays, "images": r.images},
				"internalParameters": map[string]any{"go": runtime.Version()},
				"resolvedDependencies": []any{map[string]any{
					"uri": "git+https://" + ours, "digest": map[string]string{"gitCommit": r.commit},
				}},
			},
			// Whoever runs it says by the signature who that was. No times: they would differ from run to run.
			"runDetails": map[string]any{"builder": map[string]any{"id": "https://" + ours + "/scripts/release"}},
		},
	}
	text, err := json.MarshalIndent(statement, "", "  ")
	if err != nil {
		return err
	}
	if err := r.write("provenance.intoto.json", append(text, '\n')); err != nil {
		return err
	}
	if subjects, err = r.subjects(); err != nil {
		return err
	}
	var sums strings.Builder
	for _, s := range subjects {
		fmt.Fprintf(&sums, "%s  %s\n", s.Digest["sha256"], s.Name)
	}
	if err := r.write(checksums, []byte(sums.String())); err != nil || sign == nil {
		return err
	}
	signature, err := sign([]byte(sums.String()))
	if err != nil {
		return err
	}
	return r.write(checksums+".sig", signature)
}

// subjects are all files that there are, by name; folders of images are told by their index.
func (r *release) subjects() ([]subject, error) {
	var all []subject
	err := filepath.WalkDir(r.out, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(r.out, path)
		if err != nil {
			return err
		}
		body, err := os.ReadFile(path)
		sum := sha256.Sum256(body)
		all = append(all, subject{filepath.ToSlash(name), map[string]string{"sha256": hex.EncodeToString(sum[:])}})
		return err
	})
	return all, err
}

// signer returns what signs with the key of the file, nil if there is none. The signatures are those that cosign makes of and
// verifies for blobs, and openssl too: ECDSA over SHA-256, in base64. With a key that is given that is all of sigstore there
// is to them, so its libraries, a few hundred packages, are not needed. They are deterministic (RFC 6979).
func signer(path string) (func([]byte) ([]byte, error), error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return nil, errors.New(path + " has no ECDSA key in PEM, without a password")
		}
		var key *ecdsa.PrivateKey
		switch block.Type {
		case "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case "PRIVATE KEY":
			var any_ any
			any_, err = x509.ParsePKCS8PrivateKey(block.Bytes)
			key, _ = any_.(*ecdsa.PrivateKey)
		default: // openssl writes the curve's parameters first
			continue
		}
		if err != nil || key == nil {
			return nil, errors.Join(errors.New(path+" has no ECDSA key"), err)
		}
		return func(body []byte) ([]byte, error) {
			sum := sha256.Sum256(body)
			signature, err := key.Sign(nil, sum[:], crypto.SHA256)
			return []byte(base64.StdEncoding.EncodeToString(signature)), err
		}, nil
	}
}
