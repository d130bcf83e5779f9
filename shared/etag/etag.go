// Package etag has the versions of records as entity tags (RFC 9110), and what a caller who changes a record says of the
// version that it has seen.
package etag

import (
	"slices"
	"strconv"

	"github.com/littoral-project/littoral/shared/problem"
)

// Tagged is a record with an entity tag for its version (RFC 9110).
type Tagged interface{ ETag() string }

// Of is the entity tag of a numbered version.
func Of(version int64) string { return strconv.Quote(strconv.FormatInt(version, 10)) }

// Match holds the versions named in If-Match; the zero Match fits every version.
type Match struct {
	tags []string // nil = any
}

// Any is the Match of these tags; without one it fits no version.
func Any(tags []string) Match { return Match{tags: append([]string{}, tags...)} }

// Given reports whether the caller named versions, one of which must be the present one.
func (m Match) Given() bool { return m.tags != nil }

// Check refuses a caller who has not seen the present version. The error is PreconditionFailed.
func (m Match) Check(now Tagged) error {
	if !m.Given() || slices.Contains(m.tags, now.ETag()) {
		return nil
	}
	return problem.New(problem.PreconditionFailed,
		"If-Match does not name %s, which the version is now: somebody has changed it since; read it again", now.ETag())
}
