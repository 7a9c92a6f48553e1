import type { PassJson } from '../../../../libs/outbound/apple-wallet/pass-json.js';
import type { Apns } from './apns.mjs';
import type { ReadPass } from './pass-reader.mjs';

export class Phone {
  constructor(world: { root: string; apns: Apns; reaches?: (url: string) => string });
  readonly messages: string[];
  readonly complaints: string[];
  readonly rounds: number;
  readonly library: string;
  readonly pushToken: string;
  /** @returns the serial number of the pass */
  add(link: string): Promise<string>;
  shows(serial: string): ReadPass & { modified: string | null };
  remove(serial: string): Promise<void>;
  renewPushToken(): Promise<void>;
  refresh(): Promise<void>;
}

export function findChangeMessage(before: PassJson, after: PassJson): string | undefined;
