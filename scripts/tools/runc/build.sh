#!/usr/bin/env bash
# Builds runc, which starts the containers of dockerd in tests, at the version in go.mod, into the directory $1. It needs a C
# compiler and the headers of libseccomp (on Debian: apt-get install gcc pkg-config libseccomp-dev).
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p "$1"
CGO_ENABLED=1 go build -trimpath -ldflags '-s -w' -tags seccomp -o "$1/" github.com/opencontainers/runc
