#!/usr/bin/env bash
# Builds oapi-codegen, which makes Go clients of an API page, at the version in go.mod, into the directory $1.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p "$1"
go build -trimpath -ldflags '-s -w' -o "$1/" github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen
