import { Pool } from 'pg';
import { readPosition } from '#platform/event-store/port/subscription-position.js';
import { EventStore } from '#platform/event-store/port/event-store.js';
import { Followers } from '#platform/event-store/log/followers.service.js';
import { PassChanges } from '#outbound/passes/pass-changes.subscription.js';
import { PassContents } from '#outbound/passes/pass-contents.service.js';
import type { JobOutcome } from '#platform/database/job-queue.js';
import {
  PassSender,
  type CardScope,
  type PassUpdate,
  type UpdateRequest,
} from '#outbound/passes/pass-sender.js';
import { PASS_CHANGES, PassTable } from '#outbound/passes/pass-table.service.js';
import { Passes } from '#outbound/passes/passes.service.js';
import { PassUpdates } from '#outbound/passes/pass-updates.service.js';
import { eventually } from '../jest/eventually.js';
import type { LocalService } from './service.js';
import { waitUntilReadable } from '../database/event-store.js';

/** A channel that reaches every pass, and keeps what it was asked to send. */
export class Recorder extends PassSender {
  readonly channel = 'web';
  readonly enabled = true;
  readonly concurrency = 4;
  readonly sent: PassUpdate[] = [];
  readonly scopes: CardScope[] = [];
  outcome: JobOutcome = { kind: 'done' };

  findTargets(customerCardIds: number[]): Promise<UpdateRequest[]> {
    return Promise.resolve(
      customerCardIds.map((id) => ({ channel: 'web', target: String(id), accountId: 1 })),
    );
  }

  override findSharedTargets(scope: CardScope): Promise<UpdateRequest[]> {
    this.scopes.push(scope);
    return Promise.resolve([]);
  }

  send(update: PassUpdate): Promise<JobOutcome> {
    this.sent.push(update);
    return Promise.resolve(this.outcome);
  }
}

/** Runs a dispatcher's pass subscription with the providers of a running api. */
export class PassFollower {
  readonly recorder = new Recorder();
  readonly passes: Passes;
  readonly contents: PassContents;
  readonly updates: PassUpdates;
  readonly pool: Pool;
  private readonly store: EventStore;
  private readonly stopping = new AbortController();
  private readonly running: Promise<void>;

  constructor(private readonly service: LocalService) {
    const get = <T>(type: abstract new (...args: never[]) => T): T =>
      service.app.get<T>(type, { strict: false });
    this.pool = get(Pool);
    this.passes = get(Passes);
    this.contents = get(PassContents);
    this.updates = get(PassUpdates);
    this.store = get(EventStore);
    const table = new PassTable(this.pool, this.store, this.contents, this.updates, [
      this.recorder,
    ]);
    const changes = new PassChanges(get(Followers), table);
    this.running = changes.run(this.stopping.signal);
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  /** When everything that was recorded so far has been followed. */
  async waitUntilCaughtUp(): Promise<void> {
    await waitUntilReadable(this.service.database);
    await eventually(
      async () => {
        const reached = await readPosition(this.pool, PASS_CHANGES);
        const refreshes = await this.pool.query('select 1 from pass_refreshes');
        const left = await this.store.readAll(reached, 1);
        return left.length === 0 && refreshes.rowCount === 0;
      },
      (done) => done,
    );
  }

  /** As somebody who opens the pass. */
  async open(uuid: string): Promise<number> {
    const card = await this.passes.findHolder(uuid);
    if (!card) throw new Error(`no card ${uuid}`);
    await this.contents.open(card);
    return card.id;
  }

  async tag(customerCardId: number): Promise<number> {
    return (await this.passes.find(customerCardId))?.tag ?? NaN;
  }
}
