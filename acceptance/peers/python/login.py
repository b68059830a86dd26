"""A person who logs in with the OAuth code of the Python SDK. The browser is a program that opens the address, logs the
person in, and prints the address that it is sent back to."""

import subprocess
from urllib.parse import parse_qs, urlsplit

import anyio
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientMetadata

REDIRECT = "http://127.0.0.1:33418/callback"
"""Nothing listens here: the browser prints the address."""


class Storage:
    """Keeps everything in memory."""

    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Person:
    """Opens the browser, and brings back what it prints. `made` turns the parameters into what the SDK wants."""

    def __init__(self, browser, made):
        self.browser = browser
        self.made = made
        self.returned = {}

    async def open(self, url):
        printed = await anyio.run_process([self.browser, url], stderr=subprocess.DEVNULL)
        query = urlsplit(printed.stdout.decode().strip()).query
        self.returned = {name: values[0] for name, values in parse_qs(query).items()}

    async def callback(self):
        return self.made(self.returned)


def provider(options, made):
    """The `httpx` authentication of the SDK."""
    person = Person(options.login, made)
    metadata = OAuthClientMetadata(
        client_name="creole-acceptance-peer",
        redirect_uris=[REDIRECT],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method="none",
    )
    return OAuthClientProvider(
        server_url=options.url,
        client_metadata=metadata,
        storage=Storage(),
        redirect_handler=person.open,
        callback_handler=person.callback,
    )
