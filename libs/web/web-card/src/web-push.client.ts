import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Agent } from 'undici';
import { Config } from '#kernel/config.js';
import { Deadlines } from '#sending/deadlines.client.js';
import { NameLookup } from '#sending/name-lookup.client.js';
import type { Outcome } from '#sending/outcome.js';
import { BlockedAddressError, guardedAgent, wordsFor } from '#sending/guarded-agent.client.js';
import { Exchange } from '#sending/webhook-exchange.client.js';

const DEADLINE_MS = 10_000;

/** Posts to push services. Their addresses come from browsers, so the guard of webhooks against our own network applies. */
@Injectable()
export class WebPushClient implements OnApplicationShutdown {
  private readonly agent: Agent;
  private readonly deadlines = new Deadlines(DEADLINE_MS);

  constructor(config: Config, names: NameLookup) {
    this.agent = guardedAgent(names, config.webPushRules, DEADLINE_MS);
  }

  /** Never throws: every failure is an outcome. */
  async post(
    url: string,
    headers: Record<string, string>,
    body: Buffer,
    mayBeSent: () => boolean,
  ): Promise<Outcome> {
    try {
      const { origin, pathname, search } = new URL(url);
      const request = { origin, path: pathname + search, headers, body, mayBeSent };
      const { status, retryAfter } = await new Exchange(this.deadlines).send(this.agent, request);
      return { kind: 'answered', status, retryAfter };
    } catch (error) {
      if (error instanceof BlockedAddressError) return { kind: 'blocked' };
      return { kind: 'failed', error: wordsFor(error) };
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await this.agent.destroy();
  }
}
