#!/usr/bin/env bash
# Builds Prometheus, promtool and Alertmanager, at the versions in go.mod, into the directory $1.
#
# The Go modules do not contain the built web pages. Prometheus builds without them. Alertmanager embeds them, so the script adds
# an empty page to a copy of its source. The tag remove_all_sd leaves out service discovery except for static and file targets.
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
