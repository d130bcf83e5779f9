// Package objects keeps files under keys, outside Postgres: what is written once, read seldom and kept for long.
//
// Behind the one interface is a folder (objects/folder) or a bucket of any S3 (objects/s3); objects/open chooses by an
// address. One suite (objects/objectstest) holds both to the same behaviour.
package objects

import (
	"context"
	"strings"

	"github.com/littoral-project/littoral/shared/problem"
)

// Store keeps objects. A key is a path of one or more names with slashes between, as "history/0001.jsonl.gz"
// (CheckKey). Safe for concurrent use.
type Store interface {
	// Put stores body under key, instead of what was there. A reader sees all of it or none.
	Put(ctx context.Context, key string, body []byte) error
	// Get returns what was stored last. The error is NotFound where nothing is.
	Get(ctx context.Context, key string) ([]byte, error)
	// List returns the keys that begin with prefix, in the order of their bytes.
	List(ctx context.Context, prefix string) ([]string, error)
	// Delete removes what is under key; that nothing is there is no error.
	Delete(ctx context.Context, key string) error
}

// maxKey is what S3 takes, less room for a prefix.
const maxKey = 800

// CheckKey refuses a key that some store could not keep. The error is Invalid.
func CheckKey(key string) error {
	bad := len(key) > maxKey
	for name := range strings.SplitSeq(key, "/") {
		bad = bad || name == "" || name == "." || name == ".." || len(name) > 200 ||
			strings.ContainsFunc(name, func(r rune) bool {
				return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r)
			})
	}
	if bad {
		return problem.New(problem.Invalid, "%q is no key: names of letters, digits, -, _ and . with slashes between", key)
	}
	return nil
}

// NotFound is the error for a key under which nothing is.
func NotFound(key string) error { return problem.New(problem.NotFound, "there is no object %s", key) }
