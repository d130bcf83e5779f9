// Package rules stores Prometheus rule groups wherever a place keeps them: in files, in PrometheusRule objects, in a
// Mimir or Cortex ruler, or with the rules service of ICOS.
//
// A group's id is made from its name, so storing the same group twice is an update and never makes a second one. Each
// back end is a package of its own (files, prometheusrule, mimir, icos) and passes the suite of package rulestest;
// package backend opens the one that the settings name. Package check decides what may be stored before it gets here.
package rules

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/littoral-project/littoral/shared/problem"
)

// Group is a rule group in the words of rule files.
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

// What a group and a rule may be at most, in bytes. Parsing costs up to the square of an expression's length. A name has
// room for a policy's name and id.
const (
	MaxName = 1 << 10
	MaxExpr = 16 << 10
)

// Store keeps groups. Its errors are NotFound for an id that is not there, Invalid for what the back end refuses, and
// Unavailable when it is away.
type Store interface {
	// Put stores the group under its id in place of what was there. When it returns nil, whoever evaluates the rules
	// knows of them or will by himself.
	Put(ctx context.Context, g Group) error

	// Delete removes the group with the id.
	Delete(ctx context.Context, id string) error

	// List returns all groups that were put, by id.
	List(ctx context.Context) ([]Group, error)
}

const (
	slugLength = 40
	hashLength = 10
)

// ID returns the id of the group called name: what people recognize of the name, and a hash that tells alike names
// apart. It is a DNS label and a safe file name.
func ID(name string) string {
	sum := sha256.Sum256([]byte(name))
	hash := hex.EncodeToString(sum[:])[:hashLength]
	if s := slug(name); s != "" {
		return s + "-" + hash
	}
	return "rules-" + hash
}

// slug keeps lower-case letters and digits; whatever lies between them becomes one hyphen.
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

// IsID reports whether ID can have made the text. What it refuses must never become part of a path.
func IsID(id string) bool { return len(id) <= slugLength+1+hashLength && form.MatchString(id) }

// ErrUnknown is the answer to an id that is not there.
func ErrUnknown(id string) error {
	return problem.New(problem.NotFound, "there is no rule group %q", id)
}
