// The document that describes a client, whose address is the client's id (client ID metadata document).

import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';

/** Serves the document with the certificate and the key of these files. `requests` receives what was asked. */
export async function startClientDocument({ certificate, key, requests }) {
  const files = { cert: readFileSync(certificate), key: readFileSync(key) };
  let client_id;
  const https = createServer(files, (request, response) => {
    requests.push({ method: request.method, path: request.url, status: 200 });
    response.setHeader('Content-Type', 'application/json');
    response.end(
      JSON.stringify({
        client_id,
        client_name: 'Creole',
        redirect_uris: ['http://127.0.0.1/callback'],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
        application_type: 'native',
      }),
    );
  });
  await new Promise(resolve => https.listen(0, '127.0.0.1', resolve));
  client_id = `https://localhost:${https.address().port}/client.json`;
  return client_id;
}
