import { Injectable, Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { setTimeout as wait } from 'node:timers/promises';
import { Pool } from 'pg';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { FailureLog } from '#platform/kernel/failure-log.js';
import { createId } from '#platform/kernel/randomness.js';
import { query, isTransient } from '#platform/database/connection.js';
import type { LimitedStatement } from '#platform/database/database-client.js';
import { addToWait, runOutside } from '#platform/database/database-waits.js';
import { ProcessLink } from '#platform/database/process-link.js';
import { PersonalKeys } from './personal-keys.js';

const CHANNEL = 'inkpad_erasures';
/** Every fourth poll of the link. */
const HEARTBEAT_EVERY_MS = 1_900;
/** An erasure waits no longer than this, and for no process that has been silent for as long. */
const SILENT_SECONDS = 5;
/** How long a process trusts itself after a heartbeat. Shorter, because clocks do not run alike. */
const TRUSTED_MS = 4_500;
/**
 * Delay of the first check whether all processes know. Usually they do after the second; each check takes a connection
 * of the pool.
 */
const FIRST_CHECK_AFTER_MS = 10;
const MAX_CHECK_AFTER_MS = 500;
const ANNOUNCE_AGAIN_MS = 500;
/** After this time no process holds a key, a text made with it or a connection for that text. */
const FORGOTTEN_BY_ITSELF_MS = 20_000;

/**
 * Registers the process as alive, and reads the announcements that it has not applied. A statement of its own, without which the
 * link works on a disk that is full. That a process lived need not outlive the server, whose crash ends the link.
 */
const HEARTBEAT = `
  with seen as (
    insert into erasure_watchers (id, seen_at, applied_id)
    select $1, now(), $2 from set_config('synchronous_commit', 'off', true)
    on conflict (id) do update set seen_at = now(), applied_id = excluded.applied_id
  )
  select id, to_json(subject_ids) as subject_ids from erasure_announcements where id > $2 order by id`;

const ANNOUNCE = { name: 'erasures_announce', text: 'select announce_erasure($1) as id' };

const COUNT_LAGGING = {
  name: 'erasures_count_lagging',
  text: `select count(*)::int as count from erasure_watchers
         where applied_id < $1 and seen_at > now() - interval '${SILENT_SECONDS} seconds'`,
};

type Announcement = { id: number; subject_ids: number[] };

/**
 * Keeps every process from using what it read of a person before that person was erased. Every process registers itself
 * every two seconds, on its link, and reads the announcements that it has missed. An erasure waits until every process has
 * read it, except those that have been silent for 5 s: by then they no longer trust themselves (ADR-0038).
 */
@Injectable()
export class ErasureWatch implements OnModuleInit, OnModuleDestroy {
  private readonly log = new Logger('erasures');
  private readonly id = createId();
  private applied = 0;
  private connections = 0;
  private isStopped = false;
  private isSending = false;
  private shouldSendAgain = false;
  private readonly heartbeats = new FailureLog(this.log);
  /** When the last successful heartbeat began. */
  private heartbeatAt = -Infinity;

  constructor(
    private readonly pool: Pool,
    private readonly keys: PersonalKeys,
    private readonly link: ProcessLink,
  ) {}

  async onModuleInit(): Promise<void> {
    this.keys.erasures.trustUntil(-Infinity);
    this.link.listen(
      CHANNEL,
      () => void this.sendHeartbeat(),
      () => this.reset(),
    );
    this.link.onPoll(() => this.sendIfDue());
    this.link.onLost(() => this.distrust());
    await this.link.poll();
    await this.sendHeartbeat();
  }

  async onModuleDestroy(): Promise<void> {
    this.isStopped = true;
    this.keys.erasures.trustUntil(-Infinity);
    await this.link.current
      ?.query({ text: 'delete from erasure_watchers where id = $1', values: [this.id] })
      .catch((error: unknown) => this.log.debug(getErrorMessage(error)));
  }

  /**
   * Notifies every process that these people were erased, in a commit before this call. Waits for 5 s at most, whatever
   * the database does: a process that cannot reach it no longer trusts itself by then either.
   * @returns when no process uses what it read of them before
   */
  async forgetEverywhere(subjectIds: number[]): Promise<void> {
    const now = performance.now();
    this.keys.forget(subjectIds, now);
    const over = new AbortController();
    const limit = wait(SILENT_SECONDS * 1000, undefined, { signal: over.signal });
    // The announcement continues after the wait, and after the request, when nothing catches its errors.
    const aware = runOutside(() => this.waitUntilAware(subjectIds, now));
    aware.catch((error: unknown) =>
      this.log.warn(`an erasure could not be announced: ${getErrorMessage(error)}`),
    );
    try {
      await addToWait(Promise.race([aware, limit]));
    } finally {
      over.abort();
    }
  }

  /**
   * Announces an erasure and waits until all processes know. Goes on announcing after the wait is over: the database
   * may be unreachable for this process alone.
   */
  private async waitUntilAware(subjectIds: number[], since: number): Promise<void> {
    const announcementId = await this.waitUntilAnnounced(
      subjectIds,
      since + FORGOTTEN_BY_ITSELF_MS,
    );
    if (announcementId === undefined) {
      this.log.warn('an erasure could not be announced');
      return;
    }
    const until = since + SILENT_SECONDS * 1000;
    for (let checkAfterMs = FIRST_CHECK_AFTER_MS; performance.now() < until;) {
      await wait(checkAfterMs);
      checkAfterMs = Math.min(checkAfterMs * 2, MAX_CHECK_AFTER_MS);
      if (await tryOnce(() => this.areAllAware(announcementId))) return;
    }
  }

  private async waitUntilAnnounced(
    subjectIds: number[],
    until: number,
  ): Promise<number | undefined> {
    while (performance.now() < until && !this.isStopped) {
      const announcementId = await tryOnce(() => this.announce(subjectIds));
      if (announcementId !== undefined) return announcementId;
      await wait(ANNOUNCE_AGAIN_MS, undefined, { ref: false });
    }
    return undefined;
  }

  private async announce(subjectIds: number[]): Promise<number> {
    const [announcement] = await query<{ id: number }>(this.pool, {
      ...ANNOUNCE,
      values: [subjectIds],
    });
    if (!announcement) throw new Error('announce_erasure returned no id');
    return announcement.id;
  }

  private async areAllAware(announcementId: number): Promise<boolean> {
    const [lagging] = await query<{ count: number }>(this.pool, {
      ...COUNT_LAGGING,
      values: [announcementId],
    });
    return lagging?.count === 0;
  }

  /** Trusts nothing until the next heartbeat: a server that has crashed may have forgotten this process, and waits for it no more. */
  private distrust(): void {
    this.connections++;
    this.keys.erasures.trustUntil(-Infinity);
  }

  /** Starts anew with a new connection: it may lead to another server, with other announcements under the same ids. */
  private reset(): void {
    this.connections++;
    this.applied = 0;
    this.heartbeatAt = -Infinity;
    void this.sendHeartbeat();
  }

  private sendIfDue(): void {
    if (performance.now() - this.heartbeatAt >= HEARTBEAT_EVERY_MS) void this.sendHeartbeat();
  }

  private async sendHeartbeat(): Promise<void> {
    if (this.isStopped) return;
    this.shouldSendAgain = true;
    if (this.isSending) return;
    this.isSending = true;
    try {
      while (this.shouldSendAgain) {
        this.shouldSendAgain = false;
        await this.sendOnce();
      }
      this.heartbeats.succeed();
    } catch (error) {
      this.heartbeats.fail(`erasures cannot be watched: ${getErrorMessage(error)}`);
    } finally {
      this.isSending = false;
    }
  }

  private async sendOnce(): Promise<void> {
    const { applied, connections } = this;
    const sentAt = performance.now();
    const statement: LimitedStatement = {
      name: 'erasures_heartbeat',
      text: HEARTBEAT,
      values: [this.id, applied],
      query_timeout: TRUSTED_MS,
    };
    const announcements = await this.link.current?.query<Announcement>(statement);
    // Undefined while there is no connection. Announcements of the connection before are no longer valid.
    if (announcements === undefined || connections !== this.connections || this.isStopped) return;
    const now = performance.now();
    // The interval ends with the response: a heartbeat that commits late was not seen in time.
    if (now - this.heartbeatAt > TRUSTED_MS) this.keys.invalidateAll(now);
    for (const { subject_ids: ids } of announcements) this.keys.forget(ids, now);
    const last = announcements.at(-1);
    if (last) {
      this.applied = last.id;
      this.shouldSendAgain = true;
    }
    this.heartbeatAt = sentAt;
    this.keys.erasures.trustUntil(sentAt + TRUSTED_MS);
  }
}

/**
 * Does the work once.
 * @returns undefined when the database was unavailable or busy: the caller may try again
 */
async function tryOnce<R>(work: () => Promise<R>): Promise<R | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!isTransient(error)) throw error;
    return undefined;
  }
}
