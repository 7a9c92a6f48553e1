import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { setTimeout as wait } from 'node:timers/promises';
import { Gauge, Registry } from 'prom-client';
import { DataSource } from 'typeorm';
import { getMessageWithCause } from '#kernel/errors.js';
import { poolOf } from '#database/data-source.js';
import { findMissingMigrations } from '#database/migrate.js';
import { assertWritable } from '#database/outages.js';
import { EventStore } from '#event-store/port/event-store.js';

const WITHIN_MS = 2_000;

type Checks = Record<string, 'ok' | 'unavailable'>;

/** Ready with `checks`: a part is unavailable that this process can do without. */
export type Health = { status: 'ok'; checks?: Checks } | { status: 'unavailable'; checks: Checks };

/** Whether this process can work now. The reasons are only logged: anybody may ask. */
@Injectable()
export class Readiness implements OnModuleDestroy {
  private readonly log = new Logger('health');
  private readonly checks: Check[];
  private readonly dispensable = new Map<string, () => boolean>();
  private readonly own = new Map<string, () => boolean>();
  private stopping = false;
  private migrated = false;

  constructor(
    private readonly source: DataSource,
    store: EventStore,
    registry: Registry,
  ) {
    this.checks = [
      new Check('database', () => assertWritable(poolOf(source), WITHIN_MS), this.log),
      new Check('event_store', () => store.ping(WITHIN_MS), this.log),
      new Check('migrations', () => this.askForMigrations(), this.log),
    ];
    const parts = () => this.parts();
    const isReady = async () => (await this.ask()).status === 'ok';
    registry.registerMetric(
      new Gauge({
        name: 'inkpad_reachable',
        help: 'Whether a part that this process depends on answers within 2 s: 1 or 0',
        labelNames: ['part'],
        registers: [],
        async collect() {
          for (const [part, ok] of await parts()) this.set({ part }, ok ? 1 : 0);
        },
      }),
    );
    registry.registerMetric(
      new Gauge({
        name: 'inkpad_ready',
        help: 'Whether this process is ready, as /health/ready says: 1 or 0',
        registers: [],
        async collect() {
          this.set((await isReady()) ? 1 : 0);
        },
      }),
    );
  }

  onModuleDestroy(): void {
    this.stopping = true;
  }

  /** An optional part: shown while it is unavailable. */
  doesWithout(name: string, isThere: () => boolean): void {
    this.dispensable.set(name, isThere);
  }

  /** A part of this process itself, which the others do not have. */
  requires(name: string, runs: () => boolean): void {
    this.own.set(name, runs);
  }

  async ask(): Promise<Health> {
    if (this.stopping) return { status: 'unavailable', checks: { process: 'unavailable' } };
    const own = [...this.own].map(([name, runs]) => [name, runs()] as const);
    const passed = [...(await this.parts()), ...own];
    if (passed.every(([, ok]) => ok)) return { status: 'ok' };
    const ready = passed.every(([name, ok]) => ok || this.dispensable.has(name));
    const words = passed.map(([name, ok]) => [name, ok ? 'ok' : 'unavailable'] as const);
    return { status: ready ? 'ok' : 'unavailable', checks: Object.fromEntries(words) };
  }

  private async parts(): Promise<(readonly [string, boolean])[]> {
    const asked = this.checks.map(async (check) => [check.name, await check.passes()] as const);
    const shown = [...this.dispensable].map(([name, isThere]) => [name, isThere()] as const);
    return [...(await Promise.all(asked)), ...shown];
  }

  /** Tables do not vanish again: once all migrations were found, the database is not asked any more. */
  private async askForMigrations(): Promise<void> {
    if (this.migrated) return;
    const missing = await findMissingMigrations(this.source, { query_timeout: WITHIN_MS });
    if (missing.length > 0) throw new Error(`${missing.join(', ')} missing: run npm run migrate`);
    this.migrated = true;
  }
}

class Check {
  private underWay: Promise<unknown> | undefined;
  private failing = false;

  constructor(
    readonly name: string,
    private readonly ask: () => Promise<unknown>,
    private readonly log: Logger,
  ) {}

  async passes(): Promise<boolean> {
    const failure = await this.failure();
    if (failure !== undefined && !this.failing) this.log.warn(`${this.name}: ${failure}`);
    if (failure === undefined && this.failing) this.log.log(`${this.name} answers again`);
    this.failing = failure !== undefined;
    return !this.failing;
  }

  /**
   * One check at a time, however many ask: these requests have no rate limit, and a server that hangs must
   * not take one connection of the pool after the other. An overdue check is abandoned, and nobody waits for
   * it.
   */
  private async failure(): Promise<string | undefined> {
    const asked = (this.underWay ??= inTime(this.ask()).finally(() => (this.underWay = undefined)));
    try {
      await asked;
      return undefined;
    } catch (error) {
      return getMessageWithCause(error);
    }
  }
}

async function inTime(answer: Promise<unknown>): Promise<unknown> {
  const answered = new AbortController();
  try {
    return await Promise.race([answer, noAnswer(answered.signal)]);
  } finally {
    answered.abort();
  }
}

async function noAnswer(answered: AbortSignal): Promise<never> {
  await wait(WITHIN_MS, undefined, { signal: answered });
  throw new Error(`no answer within ${WITHIN_MS} ms`);
}
