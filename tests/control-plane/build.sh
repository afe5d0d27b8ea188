#!/usr/bin/env bash
# Builds the control plane's programs from the Go module proxy into a cache outside the checkout and prints the
# folder. Some 12 minutes on two cores from nothing, no time at all when they are there.
# usage: build.sh [NAME…]   (default: all; a program found under KUBEBUILDER_ASSETS is not built)
#
# Go 1.21 is enough: go.mod asks for a later toolchain, which Go fetches from the module proxy by itself.
set -euo pipefail
me=control-plane
. "$(dirname "$0")/lib.sh"

version=$(sed -n 's/^require k8s.io\/kubernetes \(v[0-9.]*\).*/\1/p' "$here/go.mod")
minor=$(echo "$version" | cut -d. -f2)
stamp=k8s.io/component-base/version
flags="-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=${version:1:1} -X $stamp.gitMinor=$minor"

declare -A package=(
  [etcd]=go.etcd.io/etcd/server/v3
  [kube-apiserver]=k8s.io/kubernetes/cmd/kube-apiserver
  [kube-controller-manager]=k8s.io/kubernetes/cmd/kube-controller-manager
  [kube-scheduler]=k8s.io/kubernetes/cmd/kube-scheduler
  [kubectl]=k8s.io/kubernetes/cmd/kubectl
  [kwok]=sigs.k8s.io/kwok/cmd/kwok
)
[ $# -gt 0 ] || set -- kube-apiserver kube-controller-manager kube-scheduler kubectl etcd kwok

missing=()
for name in "$@"; do
  [ -n "${package[$name]:-}" ] || die "no such program: $name (there are: ${!package[*]})"
  [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$name" ] && continue
  [ -x "$programs/$name" ] || missing+=("$name")
done

mkdir -p "$programs"
find "$programs" -maxdepth 1 -name ".draft.*" -mmin +180 -exec rm -rf {} + # of builds that were killed
draft=$(mktemp -d "$programs/.draft.XXXXXX")
go=
trap 'rm -rf "$draft"; [ -z "$go" ] || kill "$go" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM

count=0
for name in "${missing[@]+"${missing[@]}"}"; do
  count=$((count + 1)); began=$SECONDS; log=$draft/$name.log
  say "[$count/${#missing[@]}] building $name"
  module=$here; [ "$name" != kwok ] || module=$here/kwok
  ld="-s -w"; case $name in kube*) ld=$flags ;; esac
  (cd "$module" && exec env GO111MODULE=on GOWORK=off GOFLAGS=-mod=readonly GOTOOLCHAIN=auto GOOS= GOARCH= \
    go build -v -trimpath -ldflags "$ld" -o "$draft/$name" "${package[$name]}") >"$log" 2>&1 &
  go=$!; beat=0
  while kill -0 "$go" 2>/dev/null; do
    sleep 0.5; beat=$((beat + 1))
    [ $((beat % 40)) -ne 0 ] ||
      say "[$count/${#missing[@]}] $name: $((SECONDS - began)) s, $(grep -vc '^go: ' "$log" || true) packages compiled"
  done
  wait "$go" || { grep -v '^[a-z0-9./_-]*$' "$log" | tail -30 >&2; go=; die "$name was not built (Go's words are above)"; }
  go=
  mv "$draft/$name" "$programs/$name" # only whole programs have their final name
  say "[$count/${#missing[@]}] $name built in $((SECONDS - began)) s"
done
echo "$programs"
