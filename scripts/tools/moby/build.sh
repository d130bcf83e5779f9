#!/usr/bin/env bash
# Builds dockerd, the engine of Docker for tests, at the version in go.mod, into the directory $1.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p "$1"
version=$(go list -m -f '{{.Version}}' github.com/moby/moby/v2)
go build -trimpath -ldflags "-s -w -X github.com/moby/moby/v2/dockerversion.Version=${version#v}" -o "$1/" github.com/moby/moby/v2/cmd/dockerd
