"""A plugin for tests: it serves Databases, and does what the annotation `example.org/act` says.

What it sees of the world stands in annotations of its Service."""

import datetime
import json
import os
import random
import sys
import time
import uuid

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports.types import (
    Child, ChildKind, Children_Exactly, Discriminator, Failure, FailureClass, KindRef, Manifest, Readiness_Auto,
    Rendering, Request, Serving,
)

POD = KindRef("", "v1", "Pod", "pods")
SERVICE = KindRef("", "v1", "Service", "services")


class Operator(exports.Operator):
    def describe(self) -> Manifest:
        database = Serving("zalando.org", ["v1"], "Database", "databases", Discriminator("/spec/type", "mongo"))
        kinds = [ChildKind(POD, []), ChildKind(SERVICE, [])]
        return Manifest("python", "1.0.0", [database], kinds, [], None, False)

    def render(self, request: Request) -> Rendering:
        parent = json.loads(request.parent)
        name = parent["metadata"]["name"]
        act = parent["metadata"].get("annotations", {}).get("example.org/act", "")
        if act != "say nothing":
            print("renders", name)
            print("takes care", file=sys.stderr)
        match act:
            case "raise":
                pick({}, "colour")
            case "refuse":
                raise Err(Failure(FailureClass.INVALID, "WrongColour", "no such colour", ["/spec/colour"], ["red"], None, None))
            case "exit":
                os._exit(3)
            case "loop":
                while time.time() < 4e9:
                    pass
            case "wait":
                deadline = time.monotonic() + 30
                while time.monotonic() < deadline:
                    pass
            case "sleep":
                time.sleep(3600)
        seen = {} if act == "say nothing" else {
            "random": str(random.random()),
            "uuid": str(uuid.uuid4()),
            "now": datetime.datetime.now(datetime.timezone.utc).isoformat(),
            "environment": str(dict(os.environ)),
            "file": read("/etc/passwd"),
        }
        metadata = {"name": name, "annotations": {f"example.org/{key}": value for key, value in seen.items()}}
        selector = {label.key: label.value for label in request.selector_labels}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
               "spec": {"containers": [{"name": "c", "image": "mongo:4.0"}]}}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata,
                   "spec": {"selector": selector, "ports": [{"port": 80}]}}
        children = [Child(json.dumps(child), None, None) for child in (service, pod)]
        return Rendering(Children_Exactly(children), [], None, [], Readiness_Auto(), None)


def pick(colours: dict, colour: str) -> str:
    return colours[colour]


def read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError as error:
        return type(error).__name__
