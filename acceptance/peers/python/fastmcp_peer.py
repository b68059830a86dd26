"""A peer made with FastMCP, whose client is built on version 2 of the Python SDK."""

import os

import mcp_types as types
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.messages import MessageHandler
from fastmcp.client.transports import StdioTransport

import common

MODES = {"auto": "auto", "legacy": "legacy", "modern": "2026-07-28"}
"""FastMCP's name of each mode; by default it is `auto`."""


class Peer:
    """The steps, with the functions of FastMCP."""

    def __init__(self, client, notes):
        self.client = client
        self.notes = notes

    async def tools(self):
        return [tool.name for tool in await self.client.list_tools()]

    async def resources(self):
        return [str(resource.uri) for resource in await self.client.list_resources()]

    async def prompts(self):
        return [prompt.name for prompt in await self.client.list_prompts()]

    async def call(self, name, arguments, heard=None):
        result = await self.client.call_tool_mcp(name, arguments, progress_handler=heard)
        return common.plain(result)

    async def read(self, uri):
        return common.plain(await self.client.read_resource_mcp(uri))

    async def prompt(self, name, arguments):
        return common.plain(await self.client.get_prompt_mcp(name, arguments))

    async def changed(self, calling):
        if self.client.protocol_version >= MODES["modern"]:
            raise NotImplementedError("the client of FastMCP cannot subscribe")
        result = await calling
        await self.notes.tools_changed.wait()
        return result


async def talk(options, notes):
    """Connects and performs the requested steps."""

    class Heard(MessageHandler):
        async def on_exception(self, message):
            notes.failed("transport", message)

        async def on_tool_list_changed(self, _message):
            notes.tools_changed.set()

    async def elicit(_message, _kind, params, _context):
        notes.elicited = True
        schema = getattr(params, "requested_schema", None)
        return ElicitResult(action="accept", content=common.answer(schema))

    async def sample(_messages, _params, _context):
        notes.sampled = True
        said = types.TextContent(type="text", text=common.SAMPLED)
        return types.CreateMessageResult(role="assistant", content=said, model="peer-model")

    async def roots(_context):
        notes.rooted = True
        return [types.Root(**common.ROOT)]

    def server():
        return StdioTransport(options.server[0], options.server[1:], env=dict(os.environ))

    mode = {} if options.mode == "default" else {"mode": MODES[options.mode]}
    async with Client(
        options.url or server(),
        roots=roots,
        sampling_handler=sample,
        elicitation_handler=elicit,
        message_handler=Heard(),
        **mode,
    ) as client:
        done = await common.perform(Peer(client, notes), notes, options)
        server_info = client.server_info
        return {
            "protocol": client.protocol_version,
            "server": common.plain(server_info) if server_info else None,
        } | done


if __name__ == "__main__":
    common.main("fastmcp", talk, package="fastmcp")
