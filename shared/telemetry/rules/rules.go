// Package rules stores Prometheus rule groups where an installation keeps them: in files, in PrometheusRule objects, in
// a Mimir or Cortex ruler, or with the rules service of ICOS.
//
// A group's id derives from its name, so storing the same group twice is an update and never creates a second one. Each
// backend is its own package (files, prometheusrule, mimir, icos) and passes the test suite in package rulestest;
// package backend opens the one that the settings choose. Package check validates groups before they are stored.
package rules

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/littoral-project/littoral/shared/problem"
)

// Group is a rule group with the names of rule files.
type Group struct {
	Name        string            `json:"name" yaml:"name"`
	Interval    string            `json:"interval,omitempty" yaml:"interval,omitempty"`
	QueryOffset string            `json:"query_offset,omitempty" yaml:"query_offset,omitempty"`
	Limit       int               `json:"limit,omitempty" yaml:"limit,omitempty"`
	Labels      map[string]string `json:"labels,omitempty" yaml:"labels,omitempty"`
	Rules       []Rule            `json:"rules" yaml:"rules"`
}

// Rule is an alerting or recording rule.
type Rule struct {
	Record        string            `json:"record,omitempty" yaml:"record,omitempty"`
	Alert         string            `json:"alert,omitempty" yaml:"alert,omitempty"`
	Expr          string            `json:"expr" yaml:"expr"`
	For           string            `json:"for,omitempty" yaml:"for,omitempty"`
	KeepFiringFor string            `json:"keep_firing_for,omitempty" yaml:"keep_firing_for,omitempty"`
	Labels        map[string]string `json:"labels,omitempty" yaml:"labels,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty" yaml:"annotations,omitempty"`
}

// Groups is the content of a rule file.
type Groups struct {
	Groups []Group `json:"groups" yaml:"groups"`
}

// Limits of a group and a rule, in bytes. The cost of parsing is up to quadratic in an expression's length. A name has
// room for a policy's name and id.
const (
	MaxName = 1 << 10
	MaxExpr = 16 << 10
)

// Store keeps groups. Its errors are NotFound for an unknown id, Invalid if the backend refuses a group, and
// Unavailable if the backend cannot be reached.
type Store interface {
	// Put stores the group under its id and replaces a former one. When it returns nil, the evaluator of the rules has
	// been notified or will notice by itself.
	Put(ctx context.Context, g Group) error

	// Delete removes the group with the id.
	Delete(ctx context.Context, id string) error

	// List returns all groups that were stored, by id.
	List(ctx context.Context) ([]Group, error)
}

const (
	slugLength = 40
	hashLength = 10
)

// ID returns the id of the group with that name: a readable part of the name, and a hash that distinguishes similar
// names. It is a DNS label and a safe file name.
func ID(name string) string {
	sum := sha256.Sum256([]byte(name))
	hash := hex.EncodeToString(sum[:])[:hashLength]
	if s := slug(name); s != "" {
		return s + "-" + hash
	}
	return "rules-" + hash
}

// slug keeps lower-case letters and digits; everything between them becomes one hyphen.
func slug(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case b.Len() >= slugLength:
			return strings.TrimSuffix(b.String(), "-")
		case (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9'):
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.TrimSuffix(b.String(), "-")
}

var form = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*-[0-9a-f]{10}$`)

// IsID reports whether the text can be a result of ID. Any other text must not become part of a path.
func IsID(id string) bool { return len(id) <= slugLength+1+hashLength && form.MatchString(id) }

// ErrUnknown is the error for an unknown id.
func ErrUnknown(id string) error {
	return problem.New(problem.NotFound, "there is no rule group %q", id)
}
