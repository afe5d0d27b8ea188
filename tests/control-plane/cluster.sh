#!/usr/bin/env bash
# A real Kubernetes control plane on loopback, with simulated nodes. Everything lives in DIR; ports are free ones, so
# that any number can run side by side. Prints the path of the administrator's KUBECONFIG.
#
# usage: cluster.sh up DIR [--nodes N] [--no-kwok] [--no-scheduler] [--while PID] [--install DIR]… [--api-flag FLAG]…
#        cluster.sh down DIR
#   --while PID      ends itself when that process has gone, however it went
#   --install DIR    a kustomization of the repository's, applied before the controllers start
#   --api-flag FLAG  one more flag for kube-apiserver, such as --service-node-port-range=30000-30002
#
# Authorization is Node,RBAC; admission is the default and OwnerReferencesPermissionEnforcement. DIR/run holds
# NAME.log and NAME.pid of each program, audit.log (one line for each request), and apiserver.crt, its CA.
set -euo pipefail
umask 077
me=control-plane
. "$(dirname "$0")/lib.sh"

usage() { sed -n '5,6s/^# //p' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage
verb=$1; mkdir -p "$2"; dir=$(cd "$2" && pwd); run=$dir/run; shift 2
nodes=3 kwok=yes scheduler=yes owner='' install=() api_flags=()
while [ $# -gt 0 ]; do
  case $1 in
    --nodes) nodes=$2; shift ;;
    --no-kwok) kwok='' ;;
    --no-scheduler) scheduler='' ;;
    --while) owner=$2; shift ;;
    --install) install+=("$2"); shift ;;
    --api-flag) api_flags+=("$2"); shift ;;
    *) usage ;;
  esac
  shift
done

case $verb in
  up) ;;
  down) stop_all; rm -rf "$run"; exit 0 ;;
  *) usage ;;
esac

kubectl=$(program kubectl)
etcd=$(program etcd)
apiserver=$(program kube-apiserver)
kcm=$(program kube-controller-manager)
[ -z "$scheduler" ] || scheduler=$(program kube-scheduler)
[ -z "$kwok" ] || kwok=$(program kwok)

trap '[ $? = 0 ] || stop_all' EXIT
trap 'exit 130' INT TERM
api() { KUBERC=off "$kubectl" --kubeconfig "$run/kubeconfig" --cache-dir "$run/cache" --request-timeout 5s "$@"; }

# etcd and the API server, on ports that were free a moment ago. Returns 1 where one of them was taken meanwhile.
serve() {
  stop_all # what a crashed run may have left; only processes that are ours
  rm -rf "$run"; mkdir -p "$run/pki"
  local client peer port token
  client=$(free_port) peer=$(free_port) port=$(free_port)
  token=$(head -c 24 /dev/urandom | base64 | tr '+/' '-_')
  echo "$token,admin,admin,system:masters" >"$run/tokens.csv"
  start etcd "$etcd" --data-dir "$run/etcd" --unsafe-no-fsync --quota-backend-bytes 4294967296 --log-level warn \
    --listen-client-urls "http://127.0.0.1:$client" --advertise-client-urls "http://127.0.0.1:$client" \
    --listen-peer-urls "http://127.0.0.1:$peer" --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
    --initial-cluster "default=http://127.0.0.1:$peer"
  # The server makes its own certificate at the first start; its key signs ServiceAccount tokens too.
  start apiserver "$apiserver" --etcd-servers "http://127.0.0.1:$client" --bind-address 127.0.0.1 --secure-port "$port" \
    --advertise-address 127.0.0.1 --endpoint-reconciler-type none --cert-dir "$run/pki" \
    --service-account-key-file "$run/pki/apiserver.key" --service-account-signing-key-file "$run/pki/apiserver.key" \
    --service-account-issuer https://kubernetes.default.svc --service-cluster-ip-range 10.96.0.0/16 \
    --token-auth-file "$run/tokens.csv" --authorization-mode Node,RBAC --allow-privileged \
    --enable-admission-plugins OwnerReferencesPermissionEnforcement \
    --audit-policy-file "$here/audit.yaml" --audit-log-path "$run/audit.log" --audit-log-maxsize 4000 \
    "${api_flags[@]+"${api_flags[@]}"}"
  local i
  for i in $(seq 300); do
    if [ -s "$run/pki/apiserver.crt" ] && [ ! -f "$run/kubeconfig" ]; then
      cp "$run/pki/apiserver.crt" "$run/ca.crt"
      cat >"$run/kubeconfig" <<K
apiVersion: v1
kind: Config
clusters: [{name: local, cluster: {server: "https://127.0.0.1:$port", certificate-authority-data: $(base64 -w0 <"$run/ca.crt")}}]
users: [{name: admin, user: {token: "$token"}}]
contexts: [{name: local, context: {cluster: local, user: admin}}]
current-context: local
K
    fi
    if [ -f "$run/kubeconfig" ] && api get --raw /readyz >/dev/null 2>&1; then return 0; fi
    for name in etcd apiserver; do
      alive $name && continue
      ! grep -q 'address already in use' "$run/$name.log" || return 1
      tail -20 "$run/$name.log" >&2; die "$name ended while starting; its last words are above"
    done
    sleep 0.2
  done
  tail -20 "$run/apiserver.log" >&2; die "the API server is not ready after a minute; its last words are above"
}
serve || serve || serve || die "no free ports"

for bundle in "${install[@]+"${install[@]}"}"; do
  api apply --server-side -k "$here/../../$bundle" >/dev/null
done
[ ${#install[@]} = 0 ] || established --all api

start controller-manager "$kcm" --kubeconfig "$run/kubeconfig" --leader-elect=false --secure-port 0 \
  --service-account-private-key-file "$run/pki/apiserver.key" --root-ca-file "$run/ca.crt" \
  --use-service-account-credentials --kube-api-qps 500 --kube-api-burst 1000 --concurrent-gc-syncs 50
[ -z "$scheduler" ] || start scheduler "$scheduler" --kubeconfig "$run/kubeconfig" --leader-elect=false --secure-port 0 \
  --kube-api-qps 500 --kube-api-burst 1000
if [ -n "$kwok" ]; then
  start kwok "$kwok" --kubeconfig "$run/kubeconfig" --config "$here/stages.yaml" --manage-all-nodes=true \
    --node-lease-duration-seconds 40
  for i in $(seq "$nodes"); do
    cat <<N
---
apiVersion: v1
kind: Node
metadata: {name: node-$i, labels: {kubernetes.io/os: linux, kubernetes.io/hostname: node-$i}}
status:
  capacity: {cpu: "999", memory: 999Gi, pods: "20000"}
  allocatable: {cpu: "999", memory: 999Gi, pods: "20000"}
N
  done | api apply --server-side -f - >/dev/null
fi
if [ -n "$owner" ]; then
  at=$(born "$owner") || die "no process $owner"
  start guard bash -c '. "$1/lib.sh"; while [ "$(born "$2")" = "$3" ]; do sleep 1; done; exec "$1/cluster.sh" down "$4"' \
    guard "$here" "$owner" "$at" "$dir"
fi
echo "$run/kubeconfig"
