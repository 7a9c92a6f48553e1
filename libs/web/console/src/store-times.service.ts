import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { query } from '#database/connection.js';
import { toDateLocale } from '#translations/translations.js';

/** Formats times for people. */
export type TimeFormats = { day: (time: Date) => string; minute: (time: Date) => string };

/** Creates time formats in the time zone of a store. */
@Injectable()
export class StoreTimes {
  constructor(private readonly pool: Pool) {}

  /** @param locale a BCP 47 tag; English dates are British */
  async forStore(accountId: number, locale: string): Promise<TimeFormats> {
    const [store] = await query<{ timeZone: string }>(this.pool, {
      name: 'console_time_zone',
      text: `select time_zone as "timeZone" from accounts where id = $1`,
      values: [accountId],
    });
    const timeZone = store?.timeZone ?? 'UTC';
    const tag = toDateLocale(locale);
    const day = new Intl.DateTimeFormat(tag, { dateStyle: 'medium', timeZone });
    const minute = new Intl.DateTimeFormat(tag, {
      dateStyle: 'medium',
      timeStyle: 'short',
      timeZone,
    });
    return { day: (time) => day.format(time), minute: (time) => minute.format(time) };
  }
}
