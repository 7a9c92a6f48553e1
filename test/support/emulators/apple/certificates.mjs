import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Creates the certificates that Apple's developer portal issues for a pass type, below a root of our own. */
export const TEAM = 'A1B2C3D4E5';
export const PASS_TYPE = 'pass.example.inkpad';

const CA = 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n';
const LEAF = 'basicConstraints=CA:FALSE\nkeyUsage=digitalSignature\n';
const SERVER =
  'basicConstraints=CA:FALSE\nsubjectAltName=DNS:localhost,DNS:push.example,IP:127.0.0.1\n';

/**
 * A root, an intermediate in the place of WWDR, a certificate for passes and one for a server, all in PEM.
 * @typedef {ReturnType<typeof appleCertificates>} AppleCertificates
 * @param {{ team?: string; passType?: string; days?: number }} [about]
 */
export function appleCertificates({ team = TEAM, passType = PASS_TYPE, days = 365 } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'apple-'));
  try {
    const openssl = (...args) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
    const issue = (name, subject, extensions, issuer) => {
      openssl('req', '-newkey', 'rsa:2048', '-nodes', '-keyout', `${name}.key`, '-subj', subject, '-out', `${name}.csr`); // prettier-ignore
      writeFileSync(join(folder, `${name}.ext`), extensions);
      const signer = issuer
        ? ['-CA', `${issuer}.pem`, '-CAkey', `${issuer}.key`, '-CAcreateserial']
        : ['-signkey', `${name}.key`];
      openssl('x509', '-req', '-sha256', '-days', `${days}`, '-in', `${name}.csr`, ...signer, '-extfile', `${name}.ext`, '-out', `${name}.pem`); // prettier-ignore
    };
    issue('root', '/CN=Test Root CA', CA);
    issue('wwdr', '/C=US/O=Test Apple/CN=Test Worldwide Developer Relations', CA, 'root');
    issue('pass', `/UID=${passType}/CN=Pass Type ID: ${passType}/OU=${team}/O=Inkpad/C=US`, LEAF, 'wwdr'); // prettier-ignore
    issue('server', '/CN=localhost', SERVER, 'root');
    const read = (name) => readFileSync(join(folder, name), 'utf8');
    return {
      root: read('root.pem'),
      wwdr: read('wwdr.pem'),
      pass: { certificate: read('pass.pem'), key: read('pass.key') },
      server: { certificate: read('server.pem'), key: read('server.key') },
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
