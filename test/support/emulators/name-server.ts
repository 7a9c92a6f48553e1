import { createSocket, type Socket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import type { AddressInfo } from 'node:net';
import ipaddr from 'ipaddr.js';
import { NameLookup } from '#outbound/sending/name-lookup.client.js';

const TYPES: Record<number, 'A' | 'AAAA'> = { 1: 'A', 28: 'AAAA' };
const FAULTS = { servfail: 2, nxdomain: 3 };

export type Question = {
  name: string;
  type: 'A' | 'AAAA';
  /** Counts the queries for this name and type from 1. */
  nth: number;
};

/** Addresses of the other family are omitted from the response. */
export type Zone = (
  question: Question,
) => { addresses: string[]; ttl?: number } | 'servfail' | 'nxdomain' | 'silence';

/** A scripted DNS server: a name may resolve differently on every query. */
export class NameServer {
  readonly queriedNames: string[] = [];

  private constructor(
    private readonly socket: Socket,
    public zone: Zone,
  ) {}

  static async start(zone: Zone): Promise<NameServer> {
    const server = new NameServer(createSocket('udp4'), zone);
    server.socket.on('message', (query, { port }) => {
      const response = server.createResponse(query);
      if (response) server.socket.send(response, port, '127.0.0.1');
    });
    await new Promise<void>((resolve) => server.socket.bind(0, '127.0.0.1', resolve));
    return server;
  }

  /** Lookups as in production, but from this server. */
  lookup(): NameLookup {
    return this.takeOver(new NameLookup());
  }

  takeOver(lookup: NameLookup): NameLookup {
    const address = `127.0.0.1:${(this.socket.address() as AddressInfo).port}`;
    const resolver = () => {
      const asking = new Resolver({ timeout: 3_000, tries: 1 });
      asking.setServers([address]);
      return asking;
    };
    Object.assign(lookup, { createResolver: resolver });
    return lookup;
  }

  async stop(): Promise<void> {
    await new Promise<void>((resolve) => this.socket.close(() => resolve()));
  }

  /** RFC 1035, section 4: a header, the question as received, and the records. */
  private createResponse(query: Buffer): Buffer | undefined {
    const labels: string[] = [];
    let end = 12;
    for (let length = query[end]; length; length = query[end]) {
      labels.push(query.toString('latin1', end + 1, end + 1 + length));
      end += 1 + length;
    }
    const type = TYPES[query.readUInt16BE(end + 1)];
    if (type === undefined) return undefined;
    const key = `${type} ${labels.join('.')}`;
    this.queriedNames.push(key);
    const nth = this.queriedNames.filter((queriedName) => queriedName === key).length;
    const reply = this.zone({ name: labels.join('.'), type, nth });
    if (reply === 'silence') return undefined;
    const kind = type === 'A' ? 'ipv4' : 'ipv6';
    const { addresses, ttl = 0 } = typeof reply === 'string' ? { addresses: [] } : reply;
    const records = addresses
      .map((address) => ipaddr.parse(address))
      .filter((address) => address.kind() === kind)
      .map((address) => {
        const bytes = Buffer.from(address.toByteArray());
        const record = Buffer.alloc(12);
        record.writeUInt16BE(0xc00c, 0);
        record.writeUInt16BE(type === 'A' ? 1 : 28, 2);
        record.writeUInt16BE(1, 4);
        record.writeUInt32BE(ttl, 6);
        record.writeUInt16BE(bytes.length, 10);
        return Buffer.concat([record, bytes]);
      });
    const header = Buffer.alloc(12);
    query.copy(header, 0, 0, 2);
    header.writeUInt16BE(0x8180 | (typeof reply === 'string' ? FAULTS[reply] : 0), 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(records.length, 6);
    return Buffer.concat([header, query.subarray(12, end + 5), ...records]);
  }
}
