import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { setTimeout as wait } from 'node:timers/promises';
import { DataSource } from 'typeorm';
import { poolOf } from '#database/data-source.js';
import { EventStore } from '#event-store/event-store.js';

const WITHIN_MS = 2_000;

export type Health =
  { status: 'ok' } | { status: 'unavailable'; checks: Record<string, 'ok' | 'unavailable'> };

/** Whether this process can do its work now. Why not stands in the log only: anybody may ask. */
@Injectable()
export class Readiness implements OnModuleDestroy {
  private readonly log = new Logger('health');
  private readonly checks: Check[];
  private stopping = false;

  constructor(source: DataSource, store: EventStore) {
    this.checks = [
      new Check('database', () => poolOf(source).query('select 1'), this.log),
      new Check('event_store', () => store.ping(), this.log),
    ];
  }

  onModuleDestroy(): void {
    this.stopping = true;
  }

  /** @param own what else this process needs, by name */
  async ask(own: Record<string, boolean> = {}): Promise<Health> {
    if (this.stopping) return { status: 'unavailable', checks: { process: 'unavailable' } };
    const asked = this.checks.map(async (check) => [check.name, await check.passes()] as const);
    const passed = [...(await Promise.all(asked)), ...Object.entries(own)];
    if (passed.every(([, ok]) => ok)) return { status: 'ok' };
    const checks = passed.map(([name, ok]) => [name, ok ? 'ok' : 'unavailable'] as const);
    return { status: 'unavailable', checks: Object.fromEntries(checks) };
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
   * One question at a time, however many ask: nobody counts these requests, and a server that hangs
   * must not be handed one connection of the pool after the other.
   */
  private async failure(): Promise<string | undefined> {
    this.underWay ??= this.ask().finally(() => (this.underWay = undefined));
    const answered = new AbortController();
    try {
      await Promise.race([this.underWay, noAnswer(answered.signal)]);
      return undefined;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    } finally {
      answered.abort();
    }
  }
}

async function noAnswer(answered: AbortSignal): Promise<never> {
  await wait(WITHIN_MS, undefined, { signal: answered });
  throw new Error(`no answer within ${WITHIN_MS} ms`);
}
