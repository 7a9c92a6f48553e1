import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { Config } from '#configuration/config.js';
import { Deadlines } from '#outbound/sending/deadlines.client.js';
import { OutdatedError } from '#outbound/sending/http-response.js';
import { NameLookup } from '#outbound/sending/name-lookup.client.js';
import type { Outcome } from '#outbound/sending/outcome.js';
import {
  BlockedAddressError,
  createGuardedConnector,
  toRequestFailure,
} from '#outbound/sending/guarded-agent.client.js';
import { USER_AGENT } from '#outbound/sending/user-agent.js';
import { HttpConnections } from '#outbound/sending/http-connections.client.js';

const DEADLINE_MS = 10_000;

/** Posts to push services. Browsers supply their addresses, so the rules of webhook targets protect our own network. */
@Injectable()
export class WebPushClient implements OnApplicationShutdown {
  private readonly connections: HttpConnections;

  constructor(config: Config, names: NameLookup) {
    const { webPushRules, outboundProxy } = config;
    const connector = createGuardedConnector(names, webPushRules, DEADLINE_MS, outboundProxy);
    this.connections = new HttpConnections(connector, new Deadlines(DEADLINE_MS));
  }

  /** Posts a message. @throws OutdatedError and nothing else: every failure is an outcome */
  async post(
    url: string,
    headers: Record<string, string>,
    body: Buffer,
    mayBeSent: () => boolean,
  ): Promise<Outcome> {
    try {
      const { origin, pathname, search } = new URL(url);
      const allHeaders = { 'user-agent': USER_AGENT, ...headers };
      const request = { origin, path: pathname + search, headers: allHeaders, body, mayBeSent };
      const { status, retryAfter } = await this.connections.send(request);
      return { kind: 'responded', status, retryAfter };
    } catch (error) {
      if (error instanceof OutdatedError) throw error;
      if (error instanceof BlockedAddressError) return { kind: 'blocked' };
      return toRequestFailure(error);
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await this.connections.close();
  }
}
