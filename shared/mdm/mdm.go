// Package mdm keeps CODECO's metadata: a graph of entities and relations, which connectors make by publishing events.
//
// An event says that an entity or a relation is so (upsert), or is no more (delete). Ids are derived from names, so that a
// repeated event changes nothing; events about one thing count in the order of their timestamps, whenever they arrive. A
// relation waits until both of its ends are there, and goes with either of them. Whoever wants to follow the graph reads
// the bus below "mdm", which holds the last event about each thing.
package mdm

import (
	"strings"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/problem"
)

// Limits of what is published, so that a batch is in memory as a whole and its statements stay short.
const (
	MaxBatch   = 1000
	MaxPayload = 64 << 10 // bytes of one payload
	maxText    = 512      // of an identifier
)

// EntityID is the id of an entity by its name, as CODECO's connectors derive it: a UUID of version 3.
func EntityID(kind, identifier string) uuid.UUID {
	return uuid.NewMD5(uuid.NameSpaceURL, []byte("urn:mdm:"+kind+":"+identifier))
}

// relationID is the id of a relation by its ends: there is one of a type between two entities, in each direction.
func relationID(kind string, from, to uuid.UUID) uuid.UUID {
	return uuid.NewMD5(uuid.NameSpaceURL, []byte("urn:mdm:"+kind+":"+from.String()+":"+to.String()))
}

// Ref names a JSON schema, as "urn:<organization>:<type>:<version>".
type Ref struct{ Organization, Type, Version string }

// ParseRef reads a reference. Its parts are made of letters, digits, hyphens, underscores and dots.
func ParseRef(text string) (Ref, bool) {
	parts := strings.Split(text, ":")
	if len(parts) != 4 || !strings.EqualFold(parts[0], "urn") {
		return Ref{}, false
	}
	for _, part := range parts[1:] {
		if !Name(part) {
			return Ref{}, false
		}
	}
	return Ref{parts[1], parts[2], parts[3]}, true
}

func (r Ref) String() string { return "urn:" + r.Organization + ":" + r.Type + ":" + r.Version }

// Name reports whether the text may be part of a reference, such as the type of an entity.
func Name(text string) bool {
	if text == "" || len(text) > 63 {
		return false
	}
	for _, c := range text {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// Version of the interface that is served.
const Version = "1.0"

// PathName checks a type that stands in a path. The error is Malformed.
func PathName(text string) (string, error) {
	if !Name(text) {
		return "", problem.New(problem.Malformed, "%q is no name of a type: those have letters, digits, hyphens, underscores and dots", problem.Brief(text, 80))
	}
	return text, nil
}

// PathRef checks a reference whose parts stand in a path. The error is Malformed.
func PathRef(organization, kind, version string) (Ref, error) {
	for _, part := range []string{organization, kind, version} {
		if _, err := PathName(part); err != nil {
			return Ref{}, err
		}
	}
	return Ref{organization, kind, version}, nil
}
