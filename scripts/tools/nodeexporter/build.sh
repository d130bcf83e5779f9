#!/usr/bin/env bash
# Builds node_exporter, whose telemetry a test measures, at the version in go.mod, into the directory $1.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p "$1"
go build -trimpath -ldflags '-s -w' -o "$1/" github.com/prometheus/node_exporter
