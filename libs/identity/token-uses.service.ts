import { Injectable, Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { Pool } from 'pg';
import { getNowMs } from '#platform/kernel/clock.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';

const WRITE_EVERY_MS = 5_000;
/** Limits how often the last use of one token is written. */
const RECORD_EVERY_MS = 60_000;

/** Another process may have written the same use; one that is writing it now is not waited for. */
const WRITE = {
  name: 'identity_token_uses',
  text: `with used as (
           select t.id, u.used_at from api_tokens t
           join unnest($1::bigint[], $2::timestamptz[]) u (id, used_at) on u.id = t.id
           where t.last_used_at is null or t.last_used_at < u.used_at - interval '1 minute'
           order by t.id for no key update of t skip locked)
         update api_tokens t set last_used_at = used.used_at from used where t.id = used.id`,
};

/** @property writtenAt when a use was last written, 0 for never */
type Uses = { usedAt: number; writtenAt: number };

/** Records when tokens were last used. Requests only note it in memory; a timer writes it for all tokens together. */
@Injectable()
export class TokenUses implements OnModuleInit, OnModuleDestroy {
  private readonly log = new Logger(TokenUses.name);
  private readonly tokens = new Map<number, Uses>();
  private timer: NodeJS.Timeout | undefined;
  private writing: Promise<void> = Promise.resolve();

  constructor(private readonly pool: Pool) {}

  onModuleInit(): void {
    this.timer = setInterval(() => void this.write(), WRITE_EVERY_MS).unref();
  }

  async onModuleDestroy(): Promise<void> {
    clearInterval(this.timer);
    await this.write();
  }

  recordUse(tokenId: number): void {
    const uses = this.tokens.get(tokenId);
    if (uses) uses.usedAt = getNowMs();
    else this.tokens.set(tokenId, { usedAt: getNowMs(), writtenAt: 0 });
  }

  /** Writes what is due, after what is being written. */
  write(): Promise<void> {
    this.writing = this.writing.then(() => this.writeDue(getNowMs()));
    return this.writing;
  }

  private async writeDue(now: number): Promise<void> {
    const due: [number, Uses][] = [];
    for (const [id, uses] of this.tokens) {
      if (now - uses.writtenAt < RECORD_EVERY_MS) continue;
      if (uses.usedAt > uses.writtenAt) due.push([id, uses]);
      else this.tokens.delete(id);
    }
    if (due.length === 0) return;
    const values = [due.map(([id]) => id), due.map(([, { usedAt }]) => new Date(usedAt))];
    try {
      await query(this.pool, { ...WRITE, values });
      for (const [, uses] of due) uses.writtenAt = now;
    } catch (error) {
      // Kept for the next time.
      this.log.warn(`the last use of tokens could not be written: ${getErrorMessage(error)}`);
    }
  }
}
