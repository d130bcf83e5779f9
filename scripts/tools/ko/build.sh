#!/usr/bin/env bash
# Builds ko, at the version in go.mod, into the directory $1. One setting is patched, because ko has no flag for it: layers are
# compressed at gzip's default level instead of for speed. Images are an eighth smaller to pull, and each takes half a second
# longer to build.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p "$1"
build=$(mktemp -d)
trap 'chmod -R u+w "$build" && rm -rf "$build"' EXIT

registry=github.com/google/go-containerregistry
cp -R "$(go list -m -f '{{.Dir}}' $registry)" "$build/registry"
chmod -R u+w "$build/registry"
layer=$build/registry/pkg/v1/tarball/layer.go
grep -q 'gzip\.BestSpeed' "$layer" || {
	echo "$registry no longer compresses for speed: see whether this is needed yet" >&2
	exit 1
}
sed -i.orig 's/gzip\.BestSpeed/gzip.DefaultCompression/' "$layer"

cp go.mod go.sum "$build"
go mod edit -replace "$registry=$build/registry" "$build/go.mod"
go build -trimpath -modfile "$build/go.mod" -o "$1/" github.com/google/ko
