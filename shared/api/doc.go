// Package api is Littoral's public contract: openapi.yaml, the types that travel, and a client for them.
//
// The types are written here once more, apart from the domain's own, for two reasons: a program that only talks to
// Littoral must not carry a database driver, and a change of the contract must be made on purpose. Tests hold both
// sides together: what the functions answer is read and written here without loss, every route of the registry stands
// in openapi.yaml with its role, and nothing stands there that is not served. Only the
// simulated fleet, which is no part of the domain, answers in these types themselves.
package api

import _ "embed"

// OpenAPI is the page that describes every operation.
//
//go:embed openapi.yaml
var OpenAPI []byte
