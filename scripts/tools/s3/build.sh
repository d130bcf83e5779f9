#!/usr/bin/env bash
# Builds an S3 server for tests, versitygw, from its module into the directory $1, version as in go.mod.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p "$1"
go build -trimpath -ldflags '-s -w' -o "$1/" github.com/versity/versitygw/cmd/versitygw
