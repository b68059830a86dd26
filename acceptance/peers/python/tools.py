"""The tools of the servers made in Python: one for each feature of a call.

../README.md describes them. A server hands over how its SDK tells of progress and asks; a call is cancelled as anyio does it.
"""

import json
import socket
import sys
from pathlib import Path

import anyio


def shape(**properties):
    """The schema of an object whose members are all required."""
    members = {name: {"type": kind} for name, kind in properties.items()}
    return {"type": "object", "properties": members, "required": list(properties)}


TOOLS = {
    "echo": {"inputSchema": shape(text="string")},
    "weather": {
        "inputSchema": shape(),
        "outputSchema": shape(city="string", temperature="number"),
    },
    "count": {"inputSchema": shape()},
    "greet": {"inputSchema": shape()},
    "think": {"inputSchema": shape()},
    "grow": {"inputSchema": shape()},
    "wait": {"inputSchema": shape(file="string")},
}
"""The tools in the list. The tool `grow` adds one."""


def listed():
    """The list of tools as JSON."""
    return [{"name": name} | told for name, told in TOOLS.items()]


async def call(name, arguments, means):
    """Runs a tool and returns its result as JSON."""
    if name == "echo":
        return text(arguments["text"])
    if name == "weather":
        found = {"city": "Berlin", "temperature": 21.5}
        return text(json.dumps(found)) | {"structuredContent": found}
    if name == "count":
        for at in (1, 2, 3):
            await means.progress(at, 3)
        return text("counted")
    if name == "greet":
        answer = await means.elicit("Who are you?", shape(name="string"))
        accepted = answer["action"] == "accept"
        return text(f"Hello, {answer['content']['name']}!" if accepted else f"Nobody: {answer['action']}.")
    if name == "think":
        return text("Thought: " + await means.sample("Think."))
    if name == "grow":
        TOOLS[f"grown{len(TOOLS)}"] = {"inputSchema": shape()}
        await means.changed()
        return text("grown")
    if name == "wait":
        return await wait(Path(arguments["file"]), means)
    raise ValueError(f"there is no tool {name}")


async def wait(file, means):
    """Waits for the cancellation and writes the file."""
    await means.progress(1, 2)
    try:
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        file.write_text("cancelled")
        raise


def text(said):
    """A result with one text block, as JSON."""
    return {"content": [{"type": "text", "text": said}]}


def serve(over_stdio, application, streaming=None):
    """Serves over HTTP and prints the address if the command line requests it, otherwise over stdio.

    With `--sse` it does so by the transport of 2024-11-05."""
    if "--http" in sys.argv:
        made, path = application, "/mcp"
    elif "--sse" in sys.argv:
        made, path = streaming, "/sse"
    else:
        anyio.run(over_stdio)
        return
    import uvicorn

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    # Before the address is printed: early connections wait until the server is ready.
    listening.listen()
    print(f"it listens on http://127.0.0.1:{listening.getsockname()[1]}{path}", file=sys.stderr, flush=True)
    uvicorn.Server(uvicorn.Config(made(), log_level="warning")).run(sockets=[listening])
