#!/usr/bin/env bash
# Builds the registry of the distribution project, for tests, at the version in go.mod, into the directory $1.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p "$1"
go build -trimpath -ldflags '-s -w' -o "$1/" github.com/distribution/distribution/v3/cmd/registry
