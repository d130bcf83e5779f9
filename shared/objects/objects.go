// Package objects stores files under keys, outside Postgres: data that is written once, read rarely and kept for long.
//
// The one interface has two implementations: a folder (objects/folder) and an S3 bucket (objects/s3); objects/open
// chooses by URL. One test suite (objects/objectstest) checks that both behave the same.
package objects

import (
	"context"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/problem"
)

// Store stores objects. A key is a path of one or more names separated by slashes, such as "history/0001.jsonl.gz"
// (CheckKey). It is safe for concurrent use.
type Store interface {
	// Put stores body under key and replaces a former object. A reader sees all of it or nothing.
	Put(ctx context.Context, key string, body []byte) error
	// Get returns the object. The error is NotFound if there is none.
	Get(ctx context.Context, key string) ([]byte, error)
	// List returns the keys that begin with prefix, in byte order.
	List(ctx context.Context, prefix string) ([]string, error)
	// Describe returns the objects whose keys begin with prefix, in byte order, without what is in them.
	Describe(ctx context.Context, prefix string) ([]Info, error)
	// Delete removes the object; it is no error if there is none.
	Delete(ctx context.Context, key string) error
}

// Info is what is known of an object without reading it.
type Info struct {
	Key        string
	Size       int64 // bytes
	ModifiedAt time.Time
}

// Keys are those of objects.
func Keys(all []Info) []string {
	var keys []string
	for _, o := range all {
		keys = append(keys, o.Key)
	}
	return keys
}

// maxKey is the limit of S3, minus room for a prefix.
const maxKey = 800

// CheckKey refuses a key that some store does not support. The error is Invalid.
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

// NotFound is the error for a key without an object.
func NotFound(key string) error { return problem.New(problem.NotFound, "there is no object %s", key) }
