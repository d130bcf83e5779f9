// Package api is Littoral's public contract: openapi.yaml, the types of its messages, and a client.
//
// The types repeat those of the domain for two reasons: a program that only talks to Littoral must not contain a
// database driver, and a change of the contract must be made deliberately. Tests keep both sides consistent: the types
// here can represent all answers of the functions, every route of the registry is in openapi.yaml with its role, and
// openapi.yaml has no other routes. Only the simulated fleet, which is not part of the domain, uses these types
// directly.
package api

import _ "embed"

// OpenAPI is the page that describes every operation.
//
//go:embed openapi.yaml
var OpenAPI []byte
