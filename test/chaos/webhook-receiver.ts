import { createHash } from 'node:crypto';
import http from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import type { Random } from './random.js';

/** An event as it was first received. */
export type ReceivedEvent = {
  id: string;
  type: string;
  sequence: number;
  /** The record, as in a path of the API. */
  about: string;
  /** The event as the model has it. */
  view: Record<string, unknown>;
  digest: string;
  /** The body, for the message about a difference. */
  text: string;
};

type Envelope = { id: string; type: string; sequence: number; data: Record<string, unknown> };

/** paused: its subscription is paused now and then; unreliable: it fails often and in every way. */
export type Behaviour = 'reliable' | 'paused' | 'unreliable';

/** accept-and-fail: accepts the event and responds with 503; fail: responds with 503; hang: accepts it without a response. */
type Failure = 'accept-and-fail' | 'fail' | 'close' | 'hang';

const FAILURES: Failure[] = ['accept-and-fail', 'fail', 'close', 'hang'];

/** Receives webhooks. Keeps events for the comparison in the end, and the errors that it notices at once. */
export class WebhookReceiver {
  /** Events by id, in the order of their first arrival. */
  readonly events = new Map<string, ReceivedEvent>();
  readonly errors: string[] = [];
  /** Events that were repeated with other bytes: allowed once a person is erased (ERASE-14). */
  readonly rewritten = new Set<string>();
  /** Events by what they are about, in the order of their first arrival. */
  readonly eventsAbout = new Map<string, ReceivedEvent[]>();
  attempts = 0;
  failed = 0;
  /** Every secret so far: an attempt may be older than a rotation. */
  readonly secrets: string[] = [];
  /** The path of the subscription. */
  path = '';
  private phase: { failure: Failure | undefined; remainingCount: number } | undefined;

  private constructor(
    private readonly name: string,
    private readonly server: http.Server,
    private readonly random: Random,
    private behaviour: Behaviour,
  ) {}

  static async open(name: string, random: Random, behaviour: Behaviour): Promise<WebhookReceiver> {
    const server = http.createServer();
    const receiver = new WebhookReceiver(name, server, random, behaviour);
    server.on('request', (request, response) => void receiver.receive(request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return receiver;
  }

  /** Whether it misses no event, so that events must come in order. */
  get isOrdered(): boolean {
    return this.behaviour === 'reliable';
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
    if (failure === 'close') {
      request.destroy();
      return;
    }
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      // The sender died while sending.
      return;
    }
    if (failure !== 'fail') {
      this.accept(Buffer.concat(chunks), request.headers as Record<string, string>);
    }
    if (failure !== 'hang') response.writeHead(failure ? 503 : 200).end();
  }

  /** Accepts everything from now on. */
  recover(): void {
    this.behaviour = 'paused';
    this.phase = undefined;
  }

  /** Makes an unreliable receiver fail in one way for a while, then work for a while. */
  private nextFailure(): Failure | undefined {
    if (this.behaviour !== 'unreliable')
      return this.random.chance(0.02) ? 'accept-and-fail' : undefined;
    if (!this.phase || this.phase.remainingCount-- === 0) {
      const failure = this.random.chance(0.3) ? this.random.pick(FAILURES) : undefined;
      this.phase = {
        failure,
        remainingCount: failure === 'hang' ? 1 : this.random.between(2, 30),
      };
    }
    if (this.phase.failure) this.failed++;
    return this.phase.failure;
  }

  private accept(bytes: Buffer, headers: Record<string, string>): void {
    const text = bytes.toString();
    const envelope = JSON.parse(text) as Envelope;
    const { id, type, sequence, data } = envelope;
    if (type === 'webhook.test') return;
    const digest = createHash('sha256').update(bytes).digest('hex');
    const earlier = this.events.get(id);
    if (earlier) {
      if (earlier.digest !== digest) this.rewritten.add(earlier.about);
      return;
    }
    // Nearly always the newest of hundreds.
    if (!this.secrets.findLast((secret) => isSigned(bytes, headers, secret))) {
      this.errors.push(`${this.name}: ${id} is not signed`);
    }
    if (headers['webhook-id'] !== id)
      this.errors.push(`${this.name}: ${id} has another webhook-id`);
    const about = findSubject(type, data);
    const event = { id, type, sequence, about, view: toModelEvent(type, data), digest, text };
    this.events.set(id, event);
    const others = this.eventsAbout.get(about);
    const last = others?.at(-1);
    if (this.isOrdered && last && last.sequence >= sequence) {
      this.errors.push(`${this.name}: ${about} came with ${last.sequence} before ${sequence}`);
    }
    if (others) others.push(event);
    else this.eventsAbout.set(about, [event]);
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

/** What the events of the only store are about, which its workers share. */
export const STORE = 'store';
const RECORD_EVENT =
  /^(?:card|reward|location|poster)\.(?:created|updated|archived|unarchived|deleted)$/;

function findSubject(type: string, data: Record<string, unknown>): string {
  if (type === 'store.updated') return STORE;
  if (RECORD_EVENT.test(type)) return `${type.split('.')[0]}s/${String(data['id'])}`;
  const card = type === 'customer_card.created' ? data['id'] : data['customer_card_id'];
  return card === undefined ? `customers/${String(data['id'])}` : `customer_cards/${String(card)}`;
}

/** Converts the data of an event to the model's event. */
function toModelEvent(type: string, data: Record<string, unknown>): Record<string, unknown> {
  const { stamps, stamps_count: count, source } = data;
  if (type === 'store.updated') return { type, name: data['store_name'] };
  if (RECORD_EVENT.test(type)) return { type, name: data['title'] ?? data['name'] };
  switch (type) {
    case 'stamp.earned':
    case 'stamp.removed':
      return { type, stamps, count, source };
    case 'reward.unlocked':
      return { type, reward: (data['reward'] as { id: number }).id, count };
    case 'reward.redeemed': {
      const { reward_id: reward, stamps_spent: spent, stamps_remaining: remaining } = data;
      return { type, reward, spent, count: remaining };
    }
    case 'customer_card.created':
      return { type };
    default:
      return { type, firstName: data['first_name'] };
  }
}
