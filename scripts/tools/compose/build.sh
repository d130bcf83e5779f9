#!/usr/bin/env bash
# Builds the command line of Docker Compose, a foreign client for tests, at the version in go.mod, into the directory $1.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p "$1"
version=$(go list -m -f '{{.Version}}' github.com/docker/compose/v2)
go build -trimpath -ldflags "-s -w -X github.com/docker/compose/v2/internal.Version=$version" -o "$1/docker-compose" github.com/docker/compose/v2/cmd
