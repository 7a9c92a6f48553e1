import { Injectable } from '@nestjs/common';
import { AccountTimeZones } from '#platform/http/input.js';
import { createTimeFormats, type TimeFormats } from './local-time.js';

/** Formats times in the time zones of stores. */
@Injectable()
export class StoreTimes {
  constructor(private readonly timeZones: AccountTimeZones) {}

  /** Returns the IANA name. @throws NotFoundError */
  async getTimeZone(storeId: number): Promise<string> {
    return this.timeZones.getTimeZone(storeId);
  }

  /** Creates time formats. @param locale of the reader, a BCP 47 tag */
  async createFormats(storeId: number, locale: string): Promise<TimeFormats> {
    return createTimeFormats(locale, await this.timeZones.getTimeZone(storeId));
  }
}
