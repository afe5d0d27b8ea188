# Sourced by the scripts beside it and by tests/demo. Needs bash, coreutils, util-linux and /proc; no curl, no openssl.
#
#   cache            folder of everything kept outside the checkout
#   programs         folder of the built control plane, keyed by all that decides what is built
#   program NAME     path of one program: $KUBEBUILDER_ASSETS first, then the built one
#   start NAME CMD…  runs CMD in the background in $run, log in NAME.log, pid in NAME.pid
#   alive NAME       whether that process of ours still runs
#   established NAME CMD…  waits until a CRD (--all: every one) is served, asked by CMD, a kubectl
#   stop_all         ends every process that was started in $run, and waits for it: a second, then it is killed
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${KEELSON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/keelson}
programs=$cache/control-plane/$(cd "$here" && cat build.sh go.mod go.sum kwok/go.mod kwok/go.sum | sha256sum | cut -c1-16)-$(uname -m)

say() { printf '%s: %s\n' "${me:-keelson}" "$*" >&2; }
die() { say "$*"; exit 1; }

program() {
  local name=$1
  if [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$name" ]; then echo "$KUBEBUILDER_ASSETS/$name"
  elif [ -x "$programs/$name" ]; then echo "$programs/$name"
  else die "$name is not built yet: make control-plane"; fi
}

# `kubectl wait` fails at once on a CRD so new that it has no conditions yet.
established() {
  local name=$1 i words; shift
  for i in $(seq 100); do
    ! words=$("$@" wait --for=condition=Established crd "$name" --timeout=10s 2>&1) || return 0
    sleep 0.2
  done
  die "crd $name is not served: $words"
}

# Start time of a process in clock ticks since boot: with the pid it names one process for good.
born() {
  local stat
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
  # shellcheck disable=SC2086 # split on purpose; the command's name before the last ")" may hold spaces
  set -- ${stat##*) }
  [ "$1" != Z ] && echo "${20}"
}

start() {
  local name=$1; shift
  (cd "$run" && exec setsid "$@" >>"$name.log" 2>&1 </dev/null) &
  echo "$! $(born $! || echo 0)" >"$run/$name.pid"
}

# Prints the pid in a pid file if that very process lives: never one that got the number later.
ours() {
  local pid at
  { read -r pid at <"$1"; } 2>/dev/null || return 1
  [ "$(born "$pid")" = "$at" ] && echo "$pid"
}
alive() { ours "$run/$1.pid" >/dev/null; }

stop_all() {
  local file pid waited
  for file in "$run"/*.pid; do # all at once, then wait: ports must be free when this returns
    pid=$(ours "$file") && [ "$pid" != $$ ] && kill -CONT "$pid" && kill "$pid" || true
  done 2>/dev/null
  for file in "$run"/*.pid; do
    waited=0
    while pid=$(ours "$file") && [ "$pid" != $$ ]; do
      [ $waited -lt 10 ] || kill -9 "$pid" 2>/dev/null || true
      waited=$((waited + 1)); sleep 0.1
    done
    rm -f "$file"
  done
}

# A port on which nobody listens, below the range from which outgoing connections take theirs.
free_port() {
  local port
  while port=$((20000 + (RANDOM * 32768 + RANDOM) % 10000)); do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
  done
}
