import http from 'node:http';
import https from 'node:https';
import type { Duplex } from 'node:stream';
import type { Config } from '#configuration/config.js';
import { OutboundTunnels } from './outbound-tunnels.client.js';

const CONNECT_TIMEOUT_MS = 5_000;

type Options = https.RequestOptions;
type Callback = (error: Error | null, socket: Duplex) => void;
type Connect = (tunnel: Duplex | undefined) => Duplex | null | undefined;

/**
 * Creates agents through the outgoing proxy for a library that uses the HTTP client of Node.js.
 * @returns undefined where there is no proxy
 */
export function createNodeAgents(
  { outboundProxy }: Pick<Config, 'outboundProxy'>,
  tunnels = new OutboundTunnels(outboundProxy),
): ((protocol: string) => http.Agent) | undefined {
  if (outboundProxy === null) return undefined;
  return (protocol) => (protocol === 'https:' ? new TlsAgent(tunnels) : new PlainAgent(tunnels));
}

class PlainAgent extends http.Agent {
  constructor(private readonly tunnels: OutboundTunnels) {
    super({ keepAlive: true });
  }

  override createConnection(options: Options, callback?: Callback): undefined {
    const connect: Connect = (tunnel) => tunnel ?? super.createConnection(options);
    connectThrough(this.tunnels, options, 80, connect, callback);
  }
}

class TlsAgent extends https.Agent {
  constructor(private readonly tunnels: OutboundTunnels) {
    super({ keepAlive: true });
  }

  override createConnection(options: Options, callback?: Callback): undefined {
    const connect: Connect = (tunnel) =>
      super.createConnection(tunnel ? Object.assign({}, options, { socket: tunnel }) : options);
    connectThrough(this.tunnels, options, 443, connect, callback);
  }
}

function connectThrough(
  tunnels: OutboundTunnels,
  { host, port }: Options,
  defaultPort: number,
  connect: Connect,
  callback: Callback | undefined,
): void {
  tunnels
    .open(host ?? 'localhost', Number(port) || defaultPort, CONNECT_TIMEOUT_MS)
    .then((tunnel) => {
      const socket = connect(tunnel);
      if (socket) callback?.(null, socket);
    })
    // The agent reads no socket after an error.
    .catch((error: Error) => callback?.(error, undefined as never));
}
