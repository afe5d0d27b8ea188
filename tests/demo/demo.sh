#!/usr/bin/env bash
# The demo: plugins and rights into a cluster, the host as a local process that is the shipped ServiceAccount there,
# the tutorial's mongo-db and a mysql-db, and a look at what came of them.
# usage: demo.sh up|down [CONTEXT]
#
# Without CONTEXT the cluster is a control plane of our own, and no configuration of the user's is read. With it, it
# is that context of the user's KUBECONFIG; the host then works in the namespace keelson-demo only.
# Reads KEELSON_BIN and KEELSON_PLUGINS (what make build has built).
set -euo pipefail
umask 077
me=demo
. "$(dirname "$0")/../control-plane/lib.sh"
root=$(cd "$here/../.." && pwd)
verb=${1:-up} context=${2:-}
state=$cache/demo${context:+-${context//[^A-Za-z0-9._-]/_}}
run=$state/host # where the host's log and pid are
hours=24
host=${KEELSON_BIN:-$root/target/release/keelson}
plugins=${KEELSON_PLUGINS:-$root/target/plugins}

if [ -z "$context" ]; then
  config=$state/control-plane/run/kubeconfig
  namespace=default
  kubectl=$(program kubectl 2>/dev/null) || [ "$verb" = down ] || program kubectl
  kube() { KUBERC=off "$kubectl" --kubeconfig "$config" --cache-dir "$state/cache" "$@"; }
else
  namespace=keelson-demo
  kubectl=$(command -v kubectl) || kubectl=$("$here/build.sh" kubectl)/kubectl
  kube() { "$kubectl" --context "$context" "$@"; }
fi
there() { kube -n $namespace "$@"; } # where the Databases are
database() { kube get "crd/databases.zalando.org" -o "$@" 2>/dev/null; }

down() {
  [ -d "$state" ] || { say "no demo is up${context:+ in $context}"; return; }
  stop_all
  if [ -z "$context" ]; then
    "$here/cluster.sh" down "$state/control-plane"
  elif [ -f "$state/installed" ]; then
    say "removing from $context what the demo had installed"
    kube delete namespace $namespace --ignore-not-found --timeout 120s >&2
    kube delete -k "$root/plugins" --ignore-not-found --timeout 60s >&2
    kube delete -k "$root/deploy/base" --ignore-not-found --timeout 60s >&2
  fi
  rm -rf "$state"
  say "all gone"
}

cluster() {
  if [ -n "$context" ]; then
    "$kubectl" config get-contexts "$context" >/dev/null 2>&1 || die "no context $context in your KUBECONFIG; there are: $("$kubectl" config get-contexts -o name | tr '\n' ' ')"
    kube get --raw /readyz >/dev/null || die "the cluster of the context $context does not answer"
    [ -f "$state/installed" ] || ! database name >/dev/null ||
      die "this cluster has a CRD databases.zalando.org already: the demo would change it. Remove it or use another cluster"
    ! kube -n keelson-system get deployment keelson -o name >/dev/null 2>&1 ||
      die "a host runs in this cluster already (deployment keelson in keelson-system): two would write the same objects"
    mkdir -p "$run"
    touch "$state/installed"
    kube create namespace $namespace --dry-run=client -o yaml | kube apply -f - >&2
  elif (run=$state/control-plane/run; alive apiserver && kube get --raw /readyz) >/dev/null 2>&1; then
    say "the control plane of an earlier make demo is up: it is kept, the host is replaced by what was built now"
  else
    say "starting etcd, kube-apiserver, kube-controller-manager, kube-scheduler and three simulated nodes"
    mkdir -p "$run"
    "$here/cluster.sh" up "$state/control-plane" >/dev/null
  fi
}

install() {
  say "installing CRD, ServiceAccount and RBAC (deploy/base, plugins)"
  kube apply --server-side -k "$root/deploy/base" >/dev/null
  kube apply --server-side -k "$root/plugins" >/dev/null
  established databases.zalando.org kube
  there wait --for=create serviceaccount/default --timeout 30s >/dev/null
}

# The host's own kubeconfig: the cluster's address and CA, and a token of the shipped ServiceAccount.
identity() {
  local server token
  server=$(kube config view --raw --minify --flatten -o 'jsonpath={.clusters[0].cluster}')
  token=$(kube -n keelson-system create token keelson --duration ${hours}h)
  cat >"$run/kubeconfig" <<K
apiVersion: v1
kind: Config
clusters: [{name: demo, cluster: $server}]
users: [{name: keelson, user: {token: "$token"}}]
contexts: [{name: demo, context: {cluster: demo, user: keelson}}]
current-context: demo
K
}

probe() { # the status of GET $1 at the host's probes
  local line
  exec 3<>"/dev/tcp/${address%:*}/${address##*:}" || return 1
  printf 'GET %s HTTP/1.0\r\n\r\n' "$1" >&3
  read -r -t 5 line <&3 || true
  exec 3<&-
  echo "$line"
}

host() {
  stop_all
  local watched='' i address=''
  [ -z "$context" ] || watched=$namespace
  say "starting the host as system:serviceaccount:keelson-system:keelson (its token is good for $hours hours)"
  start host env KUBECONFIG="$run/kubeconfig" WATCH_NAMESPACE=$watched "$host" run --plugins "$plugins" \
    --probe-address 127.0.0.1:0 --log-format json
  for i in $(seq 150); do
    alive host || { tail -20 "$run/host.log" >&2; die "the host has ended; its last words are above"; }
    [ -n "$address" ] || address=$(sed -n '/probes listen/s/.*"address": *"\([^"]*\)".*/\1/p' "$run/host.log" | tail -1)
    if [ -n "$address" ] && [[ $(probe /readyz 2>/dev/null) == *" 200 "* ]]; then return; fi
    sleep 0.2
  done
  tail -20 "$run/host.log" >&2; die "the host is not ready after 30 s; its last words are above"
}

show() {
  say "applying mongo-db and mysql-db (deploy/examples)"
  there apply -f "$root/deploy/examples/mongo-db.yaml" -f "$root/deploy/examples/mysql-db.yaml" >&2
  there wait --for=condition=Ready databases/mongo-db databases/mysql-db --timeout 180s >/dev/null || {
    there describe databases >&2; tail -20 "$run/host.log" >&2
    die "not Ready; what the objects and the host say is above"
  }
  echo
  there get databases,pods,services
  local k="kubectl --context $context -n $namespace"
  echo; echo "Go on with:"
  if [ -z "$context" ]; then
    k=kubectl
    command -v kubectl >/dev/null || echo "  export PATH=\$PATH:$(dirname "$kubectl")"
    echo "  export KUBECONFIG=$config"
  fi
  cat <<H
  $k describe database mongo-db     # conditions and events
  $k delete service mongo-db        # and see it come back: $k get services
  $k delete database mysql-db       # its Pod, Service and Secret go with it
  tail -f $run/host.log
make demo-down${context:+ CONTEXT=$context} ends it all.
H
}

case $verb in
  up) cluster; install; identity; host; show ;;
  down) down ;;
  *) die "usage: demo.sh up|down [CONTEXT]" ;;
esac
