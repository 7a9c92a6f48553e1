import { Injectable, Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { setTimeout as wait } from 'node:timers/promises';
import { Pool } from 'pg';
import { PlatformConfig } from '#kernel/platform-config.js';
import { getErrorMessage } from '#kernel/errors.js';
import { createId } from '#kernel/randomness.js';
import { query, isTransient } from '#database/connection.js';
import type { LimitedStatement } from '#database/database-client.js';
import { Notifications } from '#database/notifications.js';
import { PersonalKeys } from './personal-keys.js';

const CHANNEL = 'inkpad_erasures';
const BEAT_EVERY_MS = 1_000;
/** An erasure waits no longer than this, and for no process that has been silent for as long. */
const SILENT_SECONDS = 5;
/** How long a process trusts itself after a beat. Shorter, because clocks do not run alike. */
const TRUSTED_MS = 4_500;
/**
 * Delay of the first check whether all processes know. Usually they do after the second; each check takes a connection
 * of the pool.
 */
const FIRST_LOOK_AFTER_MS = 10;
const MAX_LOOK_AFTER_MS = 500;
const ANNOUNCE_AGAIN_MS = 500;
/** After this time no process holds a key, a text made with it or a connection for that text. */
const FORGOTTEN_BY_ITSELF_MS = 20_000;

/** Registers the process as alive, and reads the notices that it has not applied. */
const BEAT = `
  with seen as (
    insert into erasure_watchers (id, seen_at, applied_notice_id) values ($1, now(), $2)
    on conflict (id) do update set seen_at = now(), applied_notice_id = excluded.applied_notice_id
  )
  select id, to_json(subject_ids) as subject_ids from erasure_notices where id > $2 order by id`;

const ANNOUNCE = { name: 'erasures_announce', text: 'select announce_erasure($1) as id' };

const COUNT_LAGGING = {
  name: 'erasures_count_lagging',
  text: `select count(*)::int as count from erasure_watchers
         where applied_notice_id < $1 and seen_at > now() - interval '${SILENT_SECONDS} seconds'`,
};

type Notice = { id: number; subject_ids: number[] };

/**
 * Keeps every process from using what it read of a person before that person was erased. Every process registers itself
 * once a second, on the connection that notifies it of erasures, and reads the notices that it has missed. An erasure
 * waits until every process has read it, except those that have been silent for 5 s: by then they no longer trust
 * themselves.
 */
@Injectable()
export class ErasureWatch implements OnModuleInit, OnModuleDestroy {
  private readonly log = new Logger('erasures');
  private readonly id = createId();
  private readonly notifications: Notifications;
  private timer: NodeJS.Timeout | undefined;
  private applied = 0;
  private connections = 0;
  private isStopped = false;
  private isBeating = false;
  private shouldBeatAgain = false;
  private isFailing = false;
  /** When the last successful beat began. */
  private beatAt = -Infinity;

  constructor(
    private readonly pool: Pool,
    private readonly keys: PersonalKeys,
    config: PlatformConfig,
  ) {
    this.notifications = new Notifications(
      config.databaseUrl,
      CHANNEL,
      () => void this.beat(),
      () => this.reset(),
    );
  }

  async onModuleInit(): Promise<void> {
    this.keys.erasures.trustUntil(-Infinity);
    await this.notifications.listen();
    await this.beat();
    this.timer = setInterval(() => void this.beat(), BEAT_EVERY_MS).unref();
  }

  async onModuleDestroy(): Promise<void> {
    clearInterval(this.timer);
    this.isStopped = true;
    this.keys.erasures.trustUntil(-Infinity);
    await this.notifications
      .query({ text: 'delete from erasure_watchers where id = $1', values: [this.id] })
      .catch((error: unknown) => this.log.debug(getErrorMessage(error)));
    await this.notifications.close();
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
    const aware = this.waitUntilAware(subjectIds, now);
    // The announcement continues after the wait, when nothing catches its errors.
    aware.catch((error: unknown) =>
      this.log.warn(`an erasure could not be announced: ${getErrorMessage(error)}`),
    );
    try {
      await Promise.race([aware, limit]);
    } finally {
      over.abort();
    }
  }

  /**
   * Announces an erasure and waits until all processes know. Goes on announcing after the wait is over: the database
   * may be unreachable for this process alone.
   */
  private async waitUntilAware(subjectIds: number[], since: number): Promise<void> {
    const noticeId = await this.waitUntilAnnounced(subjectIds, since + FORGOTTEN_BY_ITSELF_MS);
    if (noticeId === undefined) {
      this.log.warn('an erasure could not be announced');
      return;
    }
    const until = since + SILENT_SECONDS * 1000;
    for (let lookAfterMs = FIRST_LOOK_AFTER_MS; performance.now() < until;) {
      await wait(lookAfterMs);
      lookAfterMs = Math.min(lookAfterMs * 2, MAX_LOOK_AFTER_MS);
      if (await tryOnce(() => this.areAllAware(noticeId))) return;
    }
  }

  private async waitUntilAnnounced(
    subjectIds: number[],
    until: number,
  ): Promise<number | undefined> {
    while (performance.now() < until && !this.isStopped) {
      const noticeId = await tryOnce(() => this.announce(subjectIds));
      if (noticeId !== undefined) return noticeId;
      await wait(ANNOUNCE_AGAIN_MS, undefined, { ref: false });
    }
    return undefined;
  }

  private async announce(subjectIds: number[]): Promise<number> {
    const [notice] = await query<{ id: number }>(this.pool, { ...ANNOUNCE, values: [subjectIds] });
    if (!notice) throw new Error('announce_erasure returned no id');
    return notice.id;
  }

  private async areAllAware(noticeId: number): Promise<boolean> {
    const [lagging] = await query<{ count: number }>(this.pool, {
      ...COUNT_LAGGING,
      values: [noticeId],
    });
    return lagging?.count === 0;
  }

  /** Starts anew with a new connection: it may lead to another server, with other notices under the same ids. */
  private reset(): void {
    this.connections++;
    this.applied = 0;
    this.beatAt = -Infinity;
    void this.beat();
  }

  private async beat(): Promise<void> {
    this.shouldBeatAgain = true;
    if (this.isBeating) return;
    this.isBeating = true;
    try {
      while (this.shouldBeatAgain) {
        this.shouldBeatAgain = false;
        await this.beatOnce();
      }
      this.isFailing = false;
    } catch (error) {
      // Logged once, not every second.
      if (!this.isFailing) this.log.warn(`erasures cannot be watched: ${getErrorMessage(error)}`);
      this.isFailing = true;
    } finally {
      this.isBeating = false;
    }
  }

  private async beatOnce(): Promise<void> {
    const { applied, connections } = this;
    const askedAt = performance.now();
    const statement: LimitedStatement = {
      text: BEAT,
      values: [this.id, applied],
      query_timeout: TRUSTED_MS,
    };
    const notices = await this.notifications.query<Notice>(statement);
    // Undefined while there is no connection. Notices of the connection before are no longer valid.
    if (notices === undefined || connections !== this.connections || this.isStopped) return;
    const now = performance.now();
    // The interval ends with the response: a beat that commits late was not seen in time.
    if (now - this.beatAt > TRUSTED_MS) this.keys.invalidateAll(now);
    for (const { subject_ids: ids } of notices) this.keys.forget(ids, now);
    const last = notices.at(-1);
    if (last) {
      this.applied = last.id;
      this.shouldBeatAgain = true;
    }
    this.beatAt = askedAt;
    this.keys.erasures.trustUntil(askedAt + TRUSTED_MS);
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
