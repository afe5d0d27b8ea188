"""A StaticSite: pages in a ConfigMap, a Deployment of web servers that mount them, a Service in front."""

import hashlib
import json
import re

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports.types import (
    Child, ChildKind, Children_Exactly, Failure, FailureClass, KindRef, Manifest, Readiness_Auto, Rendering, Request,
    Serving,
)

SERVES = Serving("example.org", ["v1"], "StaticSite", "staticsites", None)
KINDS = [("", "ConfigMap", "configmaps"), ("apps", "Deployment", "deployments"), ("", "Service", "services")]
SCHEMA = {
    "type": "object",
    "properties": {
        "pages": {"type": "object", "additionalProperties": {"type": "string"}},
        "replicas": {"type": "integer"},
        "image": {"type": "string"},
    },
}
IMAGE = "nginxinc/nginx-unprivileged:1.29"
PORT = 8080


class Operator(exports.Operator):
    def describe(self) -> Manifest:
        children = [ChildKind(KindRef(group, "v1", kind, plural), []) for group, kind, plural in KINDS]
        return Manifest("staticsite", "1.0.0", [SERVES], children, [], json.dumps(SCHEMA), False)

    def render(self, request: Request) -> Rendering:
        parent = json.loads(request.parent)
        metadata, spec = parent["metadata"], parent["spec"]
        name, pages = metadata["name"], spec["pages"]
        if "index.html" not in pages:
            raise invalid("there is no index.html", ["/spec/pages"], "name the first page index.html")
        for page in pages:
            if not re.fullmatch(r"[-._a-zA-Z0-9]+", page):
                raise invalid(f"a page cannot be named {page!r}", ["/spec/pages"], "take letters, digits, dots and dashes")
        selector = {label.key: label.value for label in request.selector_labels}
        children = [
            config_map(name, pages),
            deployment(name, selector, pages, spec.get("replicas", 1), spec.get("image", IMAGE)),
            service(name, selector),
        ]
        print(f"renders {name}: {sum(map(len, pages.values()))} characters in pages")
        return Rendering(
            children=Children_Exactly([Child(json.dumps(child), None, None) for child in children]),
            secrets=[],
            status=json.dumps({"pages": len(pages), "endpoint": f"{name}.{metadata['namespace']}.svc:80"}),
            conditions=[],
            ready=Readiness_Auto(),
            look_again_after=None,
        )


def config_map(name: str, pages: dict) -> dict:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": pages}


def deployment(name: str, selector: dict, pages: dict, replicas: int, image: str) -> dict:
    # Servers read their pages when they start: other pages, other Pods.
    digest = hashlib.sha256(json.dumps(pages, sort_keys=True).encode()).hexdigest()
    server = {
        "name": "server",
        "image": image,
        "ports": [{"containerPort": PORT}],
        "readinessProbe": {"httpGet": {"path": "/", "port": PORT}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "pages", "mountPath": "/usr/share/nginx/html", "readOnly": True}],
    }
    pod = {
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [server],
        "volumes": [{"name": "pages", "configMap": {"name": name}}],
    }
    template = {"metadata": {"labels": selector, "annotations": {"example.org/pages": digest}}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": selector}, "template": template},
    }


def service(name: str, selector: dict) -> dict:
    ports = [{"port": 80, "targetPort": PORT}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": selector, "ports": ports},
    }


def invalid(message: str, fields: list, remedy: str) -> Err:
    return Err(Failure(FailureClass.INVALID, "InvalidSpec", message, fields, [], remedy, None))
