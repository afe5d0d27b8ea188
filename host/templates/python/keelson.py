"""Between the contract's types and a plugin's own function. Yours to read and to change.

`plugin(render, …)` makes the class that componentize-py looks for. `render(object)` gets an `Object` and gives a dict:

* `children`: a list of objects, or "keep" (all stay as they are) or "none" (none is intended);
* `status`, `secrets` (see `secret`), `conditions`, `not_ready` ((reason, message)), `look_again_after` (seconds).

The same object must give the same answer: there is no network, no file and no other clock than `object.now`.
"""

import json
import traceback

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import log as _log
from wit_world.imports import types


def kind(group, version, kind, plural, observe=()):
    """A kind of child; `observe` lists the JSON pointers to see in it beside identity, phase and conditions."""
    return types.ChildKind(types.KindRef(group, version, kind, plural), list(observe))


CONFIG_MAP = kind("", "v1", "ConfigMap", "configmaps")
PERSISTENT_VOLUME_CLAIM = kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
POD = kind("", "v1", "Pod", "pods")
SECRET = kind("", "v1", "Secret", "secrets")
SERVICE = kind("", "v1", "Service", "services")
DEPLOYMENT = kind("apps", "v1", "Deployment", "deployments")
STATEFUL_SET = kind("apps", "v1", "StatefulSet", "statefulsets")
CRON_JOB = kind("batch", "v1", "CronJob", "cronjobs")
JOB = kind("batch", "v1", "Job", "jobs")


class Object:
    """The custom resource, and what the host knows around it."""

    def __init__(self, request):
        self.parent = json.loads(request.parent)
        self.metadata = self.parent["metadata"]
        self.name = self.metadata["name"]
        self.namespace = self.metadata.get("namespace", "")
        self.uid = self.metadata.get("uid", "")
        self.spec = self.parent.get("spec") or {}
        self.config = json.loads(request.config)
        # What a Service, or whatever else selects Pods, must select by.
        self.selector = {label.key: label.value for label in request.selector_labels}
        self.now = request.now
        self.seed = request.seed
        # Name to revision, which changes exactly when the data does.
        self.secrets = {secret.name: secret.revision for secret in request.secrets}
        self.request = request

    def child(self, kind, name):
        """A child that is there, cut down to what is observed, or None."""
        for child in self.request.children:
            if child.kind == kind.kind.kind and child.name == name:
                return json.loads(child.object)
        return None


def retained(child, data_version, line):
    """The child stays when its object goes, because it holds data."""
    return types.Child(json.dumps(child), types.Retention(data_version, line), None)


def secret(name, **keys):
    """A Secret that the host generates once: `secret("a", password=24, user="root")`; a number is a random text's length."""
    def value(it):
        if isinstance(it, int):
            return types.SecretValue_Random(types.RandomText(it, None))
        return types.SecretValue_Literal(it)

    return types.GeneratedSecret(name, [types.SecretKey(key, value(it)) for key, it in keys.items()], None, None)


def invalid(message, reason="InvalidSpec", **more):
    """To raise: the object is wrong, and not asked about again until it changes."""
    return _failure(types.FailureClass.INVALID, reason, message, **more)


def not_yet(reason, message, **more):
    """To raise: something is missing; asked again when a child changes, or after `retry_after` seconds."""
    return _failure(types.FailureClass.NOT_YET, reason, message, **more)


def _failure(class_, reason, message, fields=(), allowed=(), remedy=None, retry_after=None):
    allowed = [str(value) for value in allowed]
    return Err(types.Failure(class_, reason, message, list(fields), allowed, remedy, retry_after))


def log(message, **fields):
    """A line in the host's log."""
    _log.log(_log.Level.INFO, message, [_log.Field(key, str(value)) for key, value in fields.items()])


def plugin(render, name, version, serves, children, schema=None, uses_time=False):
    serves = [serves] if isinstance(serves, dict) else serves

    class Operator(exports.Operator):
        def describe(self):
            return types.Manifest(
                name, version, [_serving(**it) for it in serves], list(children), [], _maybe_json(schema), uses_time
            )

        def render(self, request):
            try:
                return _rendering(**render(Object(request)))
            except Err:
                raise
            except Exception as error:
                place = traceback.extract_tb(error.__traceback__)[-1]
                message = f"{type(error).__name__}: {error} (in {place.name}, line {place.lineno})"
                raise _failure(types.FailureClass.INTERNAL, "PluginError", message) from error

    return Operator


def _serving(group, versions, kind, plural, only=None):
    discriminator = types.Discriminator(*only) if only else None
    return types.Serving(group, list(versions), kind, plural, discriminator)


def _rendering(children, status=None, secrets=(), conditions=(), not_ready=None, look_again_after=None):
    words = {"keep": types.Children_Keep, "none": types.Children_None_}
    if isinstance(children, str):
        children = words[children]()
    else:
        children = types.Children_Exactly([_child(it) for it in children])
    ready = types.Readiness_NotReady(types.Explanation(*not_ready)) if not_ready else types.Readiness_Auto()
    return types.Rendering(children, list(secrets), _maybe_json(status), list(conditions), ready, look_again_after)


def _child(child):
    return child if isinstance(child, types.Child) else types.Child(json.dumps(child), None, None)


def _maybe_json(value):
    return None if value is None else json.dumps(value)
