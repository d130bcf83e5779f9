#!/usr/bin/env bash
# Builds Prometheus, promtool and Alertmanager from their modules into the directory $1, versions as in go.mod.
#
# The modules hold no built web pages. Prometheus does without; Alertmanager embeds them, so a copy of it gets an empty
# one. Service discoveries of clouds are left out; static and file targets are always there.
set -euo pipefail
cd "$(dirname "$0")"
out=$1
mkdir -p "$out"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
go mod download github.com/prometheus/alertmanager
cp -R "$(go list -m -f '{{.Dir}}' github.com/prometheus/alertmanager)" "$scratch/alertmanager"
chmod -R u+w "$scratch/alertmanager"
mkdir -p "$scratch/alertmanager/ui/app/dist"
echo '<!doctype html><title>Alertmanager, without its pages</title>' >"$scratch/alertmanager/ui/app/dist/index.html"
cp go.mod go.sum "$scratch/"
go mod edit -replace "github.com/prometheus/alertmanager=$scratch/alertmanager" "$scratch/go.mod"
go build -modfile "$scratch/go.mod" -mod=mod -trimpath -ldflags '-s -w' -tags remove_all_sd -o "$out/" \
	github.com/prometheus/alertmanager/cmd/alertmanager \
	github.com/prometheus/prometheus/cmd/prometheus \
	github.com/prometheus/prometheus/cmd/promtool
