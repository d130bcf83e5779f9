#!/usr/bin/env bash
# Builds dex, an OpenID Connect issuer for tests, at the version in go.mod, into the directory $1, with its pages beside it.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p "$1"
go build -trimpath -ldflags '-s -w' -o "$1/" github.com/dexidp/dex/cmd/dex
rm -rf "$1/web"
cp -r "$(go list -m -f '{{.Dir}}' github.com/dexidp/dex)/web" "$1/web"
chmod -R u+w "$1/web"
