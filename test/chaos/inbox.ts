import { createHash } from 'node:crypto';
import http from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import type { Random } from './random.js';

/** An envelope as it first arrived. */
export type Arrived = {
  id: string;
  type: string;
  sequence: number;
  /** Customer card or customer, as a path of the API spells it. */
  about: string;
  /** The model's view of it. */
  facts: Record<string, unknown>;
  digest: string;
  /** As it was sent, for whoever looks at a difference. */
  text: string;
};

type Envelope = { id: string; type: string; sequence: number; data: Record<string, unknown> };

/** paused: its subscription is, now and then; unsound: it fails often, in all ways. */
export type Nature = 'sound' | 'paused' | 'unsound';

/** forgets: takes it and answers 503; refuses: answers that without taking it; hangs: takes it and does not answer. */
type Failure = 'forgets' | 'refuses' | 'closes' | 'hangs';

const FAILURES: Failure[] = ['forgets', 'refuses', 'closes', 'hangs'];

/** A receiver of webhooks. It keeps what is compared in the end, and faults as soon as they show. */
export class Inbox {
  /** By event id, in the order of their first arrival. */
  readonly arrived = new Map<string, Arrived>();
  readonly faults: string[] = [];
  /** Events that were repeated with other bytes: allowed once a person is erased (ERASE-14). */
  readonly rewritten = new Set<string>();
  /** By what they are about, in the order of their first arrival. */
  readonly about = new Map<string, Arrived[]>();
  attempts = 0;
  failed = 0;
  /** All that it ever had: an attempt may be older than a rotation. */
  readonly secrets: string[] = [];
  /** Of the subscription. */
  path = '';
  private spell: { fails: Failure | undefined; left: number } | undefined;

  private constructor(
    private readonly name: string,
    private readonly server: http.Server,
    private readonly random: Random,
    private nature: Nature,
  ) {}

  static async open(name: string, random: Random, nature: Nature): Promise<Inbox> {
    const server = http.createServer();
    const inbox = new Inbox(name, server, random, nature);
    server.on('request', (request, response) => void inbox.receive(request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return inbox;
  }

  /** Whether it never misses anything, so that what it gets must come in order. */
  get inOrder(): boolean {
    return this.nature === 'sound';
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/hooks`;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }

  private async receive(
    request: http.IncomingMessage,
    response: http.ServerResponse,
  ): Promise<void> {
    this.attempts++;
    const failure = this.nextFailure();
    if (failure === 'closes') {
      request.destroy();
      return;
    }
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      // The sender died in the middle of it.
      return;
    }
    if (failure !== 'refuses') {
      this.take(Buffer.concat(chunks), request.headers as Record<string, string>);
    }
    if (failure !== 'hangs') response.writeHead(failure ? 503 : 200).end();
  }

  /** From now on it takes whatever it gets. */
  recover(): void {
    this.nature = 'paused';
    this.spell = undefined;
  }

  /** An unsound receiver fails for a while in the same way, then works for a while. */
  private nextFailure(): Failure | undefined {
    if (this.nature !== 'unsound') return this.random.chance(0.02) ? 'forgets' : undefined;
    if (!this.spell || this.spell.left-- === 0) {
      const fails = this.random.chance(0.3) ? this.random.pick(FAILURES) : undefined;
      this.spell = { fails, left: fails === 'hangs' ? 1 : this.random.between(2, 30) };
    }
    if (this.spell.fails) this.failed++;
    return this.spell.fails;
  }

  private take(bytes: Buffer, headers: Record<string, string>): void {
    const text = bytes.toString();
    const envelope = JSON.parse(text) as Envelope;
    const { id, type, sequence, data } = envelope;
    if (type === 'webhook.test') return;
    const digest = createHash('sha256').update(bytes).digest('hex');
    const earlier = this.arrived.get(id);
    if (earlier) {
      if (earlier.digest !== digest) this.rewritten.add(earlier.about);
      return;
    }
    // Nearly always the newest, and there come to be hundreds.
    if (!this.secrets.findLast((secret) => isSigned(bytes, headers, secret))) {
      this.faults.push(`${this.name}: ${id} is not signed`);
    }
    if (headers['webhook-id'] !== id)
      this.faults.push(`${this.name}: ${id} has another webhook-id`);
    const card = type === 'customer_card.created' ? data['id'] : data['customer_card_id'];
    const about =
      card === undefined ? `customers/${String(data['id'])}` : `customer_cards/${String(card)}`;
    const arrived = { id, type, sequence, about, facts: factsOf(type, data), digest, text };
    this.arrived.set(id, arrived);
    const others = this.about.get(about);
    const last = others?.at(-1);
    if (this.inOrder && last && last.sequence >= sequence) {
      this.faults.push(`${this.name}: ${about} came with ${last.sequence} before ${sequence}`);
    }
    if (others) others.push(arrived);
    else this.about.set(about, [arrived]);
  }
}

function isSigned(bytes: Buffer, headers: Record<string, string>, secret: string): boolean {
  try {
    new Webhook(secret).verify(bytes, headers);
    return true;
  } catch {
    return false;
  }
}

/** In the words of the model. */
function factsOf(type: string, data: Record<string, unknown>): Record<string, unknown> {
  const { stamps, stamps_count: count, source } = data;
  switch (type) {
    case 'stamp.earned':
    case 'stamp.removed':
      return { type, stamps, count, source };
    case 'reward.unlocked':
      return { type, reward: (data['reward'] as { id: number }).id, count };
    case 'reward.redeemed': {
      const { reward_id: reward, stamps_spent: spent, stamps_remaining: left } = data;
      return { type, reward, spent, count: left };
    }
    case 'customer_card.created':
      return { type };
    default:
      return { type, firstName: data['first_name'] };
  }
}
