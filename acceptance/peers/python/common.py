"""The shared part of the Python peers: the command line, the order of the steps, the responses to input requests.

A peer adapts one major version of the Python SDK, or what is built on it, to the few coroutines that `perform` calls, and
gives back plain JSON values. ../README.md describes the command line and the document printed.
"""

import argparse
import importlib.metadata
import json
import os
import sys
import traceback
from pathlib import Path

import anyio

STEP_SECONDS = 20
"""The timeout of one step, which is then reported as an error."""

CONVERSATION_SECONDS = 50
"""The timeout of all steps. The SDK starts the server in a session of its own, where a test that
kills this process does not reach it: so the peer gives up first, and the SDK ends the server."""

CANCELLED_SECONDS = 5
"""The time limit for the server to receive a cancellation."""

CALLING_STEPS = ("call", "progress", "cancel", "elicit", "sample", "roots", "list_changed")
"""The steps that call a tool, in the order in which they are performed."""

ROOT = {"uri": "file:///peer/root", "name": "peer root"}
"""The root that a peer returns to `roots/list`."""

SAMPLED = "Sampled by the peer."
"""The text that a peer returns to a sampling request."""


def arguments():
    """Reads the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=("default", "auto", "legacy", "modern"), default="default")
    parser.add_argument("--read", metavar="URI")
    parser.add_argument("--prompt", nargs=2, metavar=("NAME", "JSON"))
    for step in CALLING_STEPS:
        parser.add_argument("--" + step.replace("_", "-"), nargs=2, metavar=("NAME", "JSON"))
    parser.add_argument("--url")
    parser.add_argument("--login", metavar="BROWSER")
    parser.add_argument("server", nargs="*")
    options = parser.parse_args()
    if bool(options.url) == bool(options.server):
        parser.error("either --url or a server command after -- is needed")
    return options


def server_parameters(parameters, options):
    """The server to start, with the whole environment of the test."""
    return parameters(command=options.server[0], args=options.server[1:], env=dict(os.environ))


def answer(schema):
    """Content that an elicitation's schema accepts: its defaults, else the simplest values."""
    properties = (schema or {}).get("properties", {})
    return {name: plainest(shape) for name, shape in properties.items()}


def plainest(shape):
    """The simplest value that one property of an elicitation's schema accepts."""
    if "default" in shape:
        return shape["default"]
    for choices in (shape.get("oneOf"), shape.get("anyOf")):
        if choices:
            return choices[0]["const"]
    if shape.get("enum"):
        return shape["enum"][0]
    kind = shape.get("type")
    if kind == "array":
        return [plainest(shape.get("items", {}))]
    if kind == "boolean":
        return True
    if kind in ("integer", "number"):
        return shape.get("minimum", 1)
    formats = {"email": "peer@example.com", "uri": "https://example.com/", "date": "2026-07-28"}
    return formats.get(shape.get("format"), "peer")


def plain(model):
    """A result of the SDK as JSON."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


class Notes:
    """The requests and notifications of the server, recorded by the SDK's callbacks while the steps run."""

    def __init__(self):
        self.elicited = False
        self.sampled = False
        self.rooted = False
        self.tools_changed = anyio.Event()
        self.errors = []

    def failed(self, step, error):
        """Records an error of one step, with the code and data of the server, if any."""
        sent = getattr(error, "error", None)
        note = {"step": step, "message": str(error) or type(error).__name__}
        if getattr(sent, "code", None) is not None:
            note |= {"code": sent.code, "message": sent.message}
            if sent.data is not None:
                note["data"] = sent.data
        self.errors.append(note)


async def perform(peer, notes, options):
    """Performs the requested steps and returns their results."""
    done = {}

    async def step(name, coroutine):
        try:
            with anyio.fail_after(STEP_SECONDS):
                done[name] = await coroutine
        except Exception as error:  # any failure of a step belongs in the document
            notes.failed(name, error)

    async def call(name, **more):
        tool, arguments_text = getattr(options, name)
        return await peer.call(tool, json.loads(arguments_text), **more)

    await step("tools", peer.tools())
    if options.call:
        await step("call", call("call"))
    if options.read:
        await step("resources", peer.resources())
        await step("read", peer.read(options.read))
    if options.prompt:
        await step("prompts", peer.prompts())
        await step("prompt", peer.prompt(options.prompt[0], json.loads(options.prompt[1])))
    if options.progress:
        seen = done["progress"] = []

        async def heard(progress, total, message):
            told = {"progress": progress, "total": total, "message": message}
            seen.append({key: value for key, value in told.items() if value is not None})

        await step("progress_call", call("progress", heard=heard))
    if options.cancel:
        await step("cancelled", cancel(peer, options.cancel[0], json.loads(options.cancel[1])))
    for name, asked, fact in (
        ("elicit", "elicited", "elicited"),
        ("sample", "sampled", "sampled"),
        ("roots", "rooted", "roots"),
    ):
        if getattr(options, name):
            await step(name + "_call", call(name))
            done[fact] = getattr(notes, asked)
    if options.list_changed:
        await step("list_changed_call", peer.changed(call("list_changed")))
        done["list_changed"] = notes.tools_changed.is_set()
    return done


async def cancel(peer, tool, arguments):
    """Cancels a call after its first progress. Returns whether the server wrote the file that the arguments name."""
    with anyio.CancelScope() as scope:

        async def heard(_progress, _total, _message):
            scope.cancel()

        await peer.call(tool, arguments, heard=heard)
    if cancelled := getattr(peer, "cancelled", None):
        await cancelled()
    with anyio.move_on_after(CANCELLED_SECONDS):
        while not Path(arguments["file"]).exists():
            await anyio.sleep(0.02)
    return Path(arguments["file"]).exists()


def main(sdk, talk, package="mcp"):
    """Runs `talk`, which connects and performs the steps, and prints the JSON document."""
    options = arguments()
    document = {"sdk": sdk, "version": importlib.metadata.version(package)}
    notes = Notes()

    async def bounded():
        with anyio.fail_after(CONVERSATION_SECONDS):
            return await talk(options, notes)

    try:
        document |= anyio.run(bounded)
    except SystemExit:
        raise
    except BaseException as error:
        traceback.print_exception(error)
        print(f"{sdk}: no conversation with {options.url or options.server}: {error!r}", file=sys.stderr)
        sys.exit(1)
    print(json.dumps(document | {"errors": notes.errors}))
