import { connect } from 'node:tls';
import { isIP } from 'node:net';
import { parseConnectionString } from './connection-string.js';

const TIMEOUT_MS = 3_000;

/** What OpenSSL says about a server that responds in plain text. */
const NO_TLS = /wrong version number|packet length too long|unknown protocol|record layer failure/i;

/**
 * Finds out whether a server that cannot be reached speaks TLS where the connection string says that it does not, or
 * the other way round: gRPC reports a lost connection either way.
 * @returns what to do; undefined when that is not the reason
 */
export async function findTlsMismatch(
  url: string,
  setting = 'EVENT_STORE_URL',
): Promise<string | undefined> {
  const { hosts, isTls } = parseConnectionString(url);
  for (const host of hosts) {
    const speaksTls = await detectTls(host);
    if (speaksTls === true && !isTls) {
      return `The event store at ${host} speaks TLS, and ${setting} says tls=false: remove that, and name the certificate of its authority as tlsCAFile unless it is a public one.`;
    }
    if (speaksTls === false && isTls) {
      return `The event store at ${host} does not speak TLS, and ${setting} does not say tls=false: add that, or set up TLS on the server.`;
    }
  }
  return undefined;
}

/** @returns undefined when nothing can be told: nobody listens, or there is no response in time */
function detectTls(address: string): Promise<boolean | undefined> {
  const [, host = '', port] = /^\[?([^\]]*?)\]?:(\d+)$/.exec(address) ?? [];
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port: Number(port),
      // Only what it speaks is of interest here; nothing is sent.
      rejectUnauthorized: false,
      ALPNProtocols: ['h2'],
      ...(isIP(host) === 0 && { servername: host }),
    });
    const end = (result: boolean | undefined) => {
      socket.destroy();
      resolve(result);
    };
    socket.setTimeout(TIMEOUT_MS, () => end(undefined));
    socket.once('secureConnect', () => end(true));
    socket.once('error', (error) => end(NO_TLS.test(error.message) ? false : undefined));
    socket.once('close', () => end(undefined));
  });
}
