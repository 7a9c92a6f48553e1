import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { query } from '#database/connection.js';

/** Formats times for people. */
export type TimeFormats = { day: (time: Date) => string; minute: (time: Date) => string };

/** Creates time formats in the time zone of a store. */
@Injectable()
export class StoreTimes {
  constructor(private readonly pool: Pool) {}

  async forStore(accountId: number): Promise<TimeFormats> {
    const [store] = await query<{ timeZone: string }>(this.pool, {
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
