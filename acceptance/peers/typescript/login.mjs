// A person who logs in with the OAuth code of the TypeScript SDK. The browser is a program that opens the address, logs the
// person in, and prints the address that it is sent back to.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Nothing listens here: the browser prints the address. */
const REDIRECT = 'http://127.0.0.1:33418/callback';

/** The `OAuthClientProvider` of the SDK. It keeps everything in memory. */
export class Person {
  /** The parameters that the browser brought back. */
  returned;
  #browser;
  #client;
  #tokens;
  #verifier;
  #discovered;

  constructor(browser) {
    this.#browser = browser;
  }

  redirectUrl = REDIRECT;
  clientMetadata = {
    client_name: 'creole-acceptance-peer',
    redirect_uris: [REDIRECT],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    application_type: 'native',
  };

  clientInformation = () => this.#client;
  saveClientInformation = client => void (this.#client = client);
  tokens = () => this.#tokens;
  saveTokens = tokens => void (this.#tokens = tokens);
  codeVerifier = () => this.#verifier;
  saveCodeVerifier = verifier => void (this.#verifier = verifier);
  discoveryState = () => this.#discovered;
  saveDiscoveryState = state => void (this.#discovered = state);

  async redirectToAuthorization(url) {
    const { stdout } = await promisify(execFile)(this.#browser, [url.href]);
    this.returned = new URL(stdout.trim()).searchParams;
  }
}

/**
 * Connects, and logs in if the server demands it. `open` returns a transport, and `finish` gives it the parameters that the
 * browser brought back. `notes` forgets the refusal before the login.
 */
export async function connectAs(person, client, { open, finish, within, notes }) {
  const transport = await open();
  try {
    return await client.connect(transport, within);
  } catch (error) {
    if (!person?.returned) throw error;
    await finish(transport, person.returned);
    notes.errors.length = 0;
    return client.connect(await open(), within);
  }
}
