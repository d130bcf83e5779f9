#!/usr/bin/env bash
# Builds the OpenTelemetry Collector of a site, of the parts in manifest.yaml at the versions in go.mod, into the directory $1; or,
# with --image, as an image that ko pushes to KO_DOCKER_REPO and whose reference it prints. The collector's own builder writes its
# main; go.mod is ours, so that every version is pinned. To change versions: edit both files, then "build.sh --tidy", which writes
# go.mod and go.sum anew. Of Prometheus' service discovery, that of Kubernetes is built in, and static targets.
set -euo pipefail
cd "$(dirname "$0")"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp -R go.mod go.sum manifest.yaml compressedstorage .ko.yaml "$scratch/"
go build -trimpath -o "$scratch/builder" go.opentelemetry.io/collector/cmd/builder
cd "$scratch"
printf '  output_path: .\n' | sed -i.orig '/^dist:/r /dev/stdin' manifest.yaml
./builder --skip-get-modules --skip-compilation --config manifest.yaml >builder.log 2>&1 || { cat builder.log >&2; exit 1; }
if [ "$1" = --tidy ]; then
	go mod tidy
	cp go.mod go.sum "$OLDPWD/"
	exit
fi
if [ "$1" = --image ]; then
	"$KO" build --base-import-paths --sbom=spdx .
	exit
fi
mkdir -p "$1"
go build -trimpath -ldflags '-s -w' -tags remove_all_sd,enable_kubernetes_sd -o "$1/littoral-collector" .
