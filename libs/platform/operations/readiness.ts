import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { Registry } from 'prom-client';
import { DataSource } from 'typeorm';
import { getMessageWithCause } from '#platform/kernel/errors.js';
import { FailureLog } from '#platform/kernel/failure-log.js';
import { addGauge } from '#platform/kernel/gauges.js';
import { withTimeout } from '#platform/kernel/with-timeout.js';
import { getPool } from '#platform/database/data-source.js';
import { findMissingMigrations } from '#platform/database/migrate.js';
import { runWithWait } from '#platform/database/database-waits.js';
import { assertWritable } from '#platform/database/outages.js';
import { ProcessSession } from '#platform/database/process-session.js';
import { EventStore } from '#platform/event-store/port/event-store.js';

const TIMEOUT_MS = 2_000;

type Checks = Record<string, 'ok' | 'unavailable'>;

/** A ready process lists `checks` only while an optional part is unavailable. */
export type Health = { status: 'ok'; checks?: Checks } | { status: 'unavailable'; checks: Checks };

/** Checks whether this process can work. The reasons are only logged: the path is public. */
@Injectable()
export class Readiness implements OnModuleDestroy {
  private readonly log = new Logger('health');
  private readonly checks: Check[];
  private readonly optionalParts = new Map<string, () => boolean>();
  private readonly requiredParts = new Map<string, () => boolean>();
  private isStopping = false;
  private isMigrated = false;

  constructor(
    private readonly source: DataSource,
    eventStore: EventStore,
    private readonly session: ProcessSession,
    registry: Registry,
  ) {
    this.checks = [
      new Check('database', () => assertWritable(getPool(source), TIMEOUT_MS), this.log),
      new Check('migrations', () => this.assertMigrated(), this.log),
    ];
    // Every process is without an event store that is away, and each of them still serves what PostgreSQL has (ADR-0144).
    this.addOptionalPart('event_store', () => eventStore.isReachable);
    addGauge(
      registry,
      {
        name: 'inkpad_reachable',
        help: 'Whether a part that this process depends on responds within 2 s: 1 or 0',
        labelNames: ['part'],
      },
      async (gauge) => {
        for (const [part, ok] of await this.parts()) gauge.set({ part }, ok ? 1 : 0);
      },
    );
    addGauge(
      registry,
      {
        name: 'inkpad_ready',
        help: 'Whether this process is ready, as /health/ready says: 1 or 0',
      },
      async (gauge) => gauge.set((await this.check()).status === 'ok' ? 1 : 0),
    );
  }

  onModuleDestroy(): void {
    this.stop();
  }

  /** Reports the process as not ready from now on, for good. */
  stop(): void {
    this.isStopping = true;
  }

  /** Adds an optional part, which is listed while it is unavailable. */
  addOptionalPart(name: string, isThere: () => boolean): void {
    this.optionalParts.set(name, isThere);
  }

  /** Adds a required part that only this process has. */
  addRequiredPart(name: string, runs: () => boolean): void {
    this.requiredParts.set(name, runs);
  }

  async check(): Promise<Health> {
    if (this.isStopping) return { status: 'unavailable', checks: { process: 'unavailable' } };
    const ownResults = [...this.requiredParts].map(([name, runs]) => [name, runs()] as const);
    const standby = getPool(this.source).outages.isStandbyAway
      ? [['synchronous_standby', false] as const]
      : [];
    const results = [...(await this.parts()), ...standby, ...ownResults];
    if (results.every(([, ok]) => ok)) return { status: 'ok' };
    const isReady =
      results.every(([name, ok]) => ok || this.optionalParts.has(name)) &&
      !this.session.isAloneCutOff;
    const entries = results.map(([name, ok]) => [name, ok ? 'ok' : 'unavailable'] as const);
    return { status: isReady ? 'ok' : 'unavailable', checks: Object.fromEntries(entries) };
  }

  private async parts(): Promise<(readonly [string, boolean])[]> {
    const results = this.checks.map(async (check) => [check.name, await check.passes()] as const);
    const optionalResults = [...this.optionalParts].map(
      ([name, isThere]) => [name, isThere()] as const,
    );
    return [...(await Promise.all(results)), ...optionalResults];
  }

  /** Checks the migrations until all were found once: tables do not vanish again. */
  private async assertMigrated(): Promise<void> {
    if (this.isMigrated) return;
    const missing = await findMissingMigrations(this.source, { query_timeout: TIMEOUT_MS });
    if (missing.length > 0) throw new Error(`${missing.join(', ')} missing: run inkpad migrate`);
    this.isMigrated = true;
  }
}

class Check {
  private pending: Promise<unknown> | undefined;
  private readonly failures: FailureLog;

  constructor(
    readonly name: string,
    private readonly run: () => Promise<unknown>,
    log: Logger,
  ) {
    this.failures = new FailureLog(log);
  }

  async passes(): Promise<boolean> {
    const failure = await this.findFailure();
    if (failure === undefined) this.failures.succeed(`${this.name} responds again`);
    else this.failures.fail(`${this.name}: ${failure}`);
    return failure === undefined;
  }

  /**
   * Runs one check at a time, however many callers wait: these requests have no rate limit, and a server that hangs
   * must not take all connections of the pool. An overdue check is abandoned.
   */
  private async findFailure(): Promise<string | undefined> {
    const result = (this.pending ??= this.runForAll());
    try {
      await result;
      return undefined;
    } catch (error) {
      return getMessageWithCause(error);
    }
  }

  /** Runs as work of no owner: a probe must not wait behind the requests of its network. */
  private runForAll(): Promise<unknown> {
    const check = runWithWait(undefined, () => withTimeout(this.run(), TIMEOUT_MS));
    return check.finally(() => (this.pending = undefined));
  }
}
