import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { ask } from '#database/connection.js';

/** Writes a moment for people. */
export type TimeFormats = { day: (time: Date) => string; minute: (time: Date) => string };

/** Moments as they are said in a store: by its time zone. */
@Injectable()
export class StoreTimes {
  constructor(private readonly pool: Pool) {}

  async forStore(accountId: number): Promise<TimeFormats> {
    const [store] = await ask<{ timeZone: string }>(this.pool, {
      name: 'console_time_zone',
      text: `select time_zone as "timeZone" from accounts where id = $1`,
      values: [accountId],
    });
    const timeZone = store?.timeZone ?? 'UTC';
    const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone });
    const minute = new Intl.DateTimeFormat('en-GB', {
      dateStyle: 'medium',
      timeStyle: 'short',
      timeZone,
    });
    return { day: (time) => day.format(time), minute: (time) => minute.format(time) };
  }
}
