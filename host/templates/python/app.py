"""For each __KIND__ a Deployment, and a Service in front of it."""

from keelson import DEPLOYMENT, SERVICE, invalid, plugin


def render(object):
    port = object.spec.get("port", 80)
    if port == 22:
        raise invalid("port 22 is for ssh", fields=["/spec/port"], remedy="take 8080")
    container = {"name": "main", "image": object.spec["image"], "ports": [{"containerPort": port}]}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": object.name},
        "spec": {
            "selector": {"matchLabels": object.selector},
            "template": {"metadata": {"labels": object.selector}, "spec": {"containers": [container]}},
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": object.name},
        "spec": {"selector": object.selector, "ports": [{"port": port}]},
    }
    endpoint = f"{object.name}.{object.namespace}.svc:{port}"
    return {"children": [deployment, service], "status": {"endpoint": endpoint}}


Operator = plugin(
    render,
    name="__NAME__",
    version="0.1.0",
    serves={"group": "__GROUP__", "versions": ["v1"], "kind": "__KIND__", "plural": "__PLURAL__"},
    children=[DEPLOYMENT, SERVICE],
)
