// Prints a key pair as JSON: the key of Glewlwyd's tokens.

import { generateKeyPairSync } from 'node:crypto';

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const key = privateKey.export({ type: 'pkcs8', format: 'pem' });
console.log(JSON.stringify({ key, cert: publicKey.export({ type: 'spki', format: 'pem' }) }));
