import type { INestApplicationContext } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { InvalidArgumentError } from 'commander';
import { findEmailKey } from '#platform/kernel/email-address.js';
import { normalizeNumber } from '#platform/kernel/text.js';
import { EARLIEST_TIME, LATEST_TIME, type MomentOfDay } from '#platform/kernel/zoned-time.js';
import { toTime } from '#platform/http/conversions.js';
import { runProgram } from '../run-program.js';
import { withServices } from '../command-services.js';

/** Runs a command and prints its result as one JSON object on standard output. */
export function runCommand(
  work: (bus: CommandBus, app: INestApplicationContext) => Promise<object>,
): void {
  runProgram(async () => {
    const result = await withServices((app) => work(app.get(CommandBus), app));
    console.log(JSON.stringify(result));
  });
}

/** Runs a command like `run`, but asks for input before it connects. */
export function runCommandAfterInput<T>(
  ask: () => Promise<T>,
  work: (bus: CommandBus, input: T) => Promise<object>,
): void {
  runProgram(async () => {
    const input = await ask();
    const result = await withServices((app) => work(app.get(CommandBus), input));
    console.log(JSON.stringify(result));
  });
}

/** Prints rows as one JSON object with a list. */
export function runList(
  name: string,
  read: (app: INestApplicationContext) => Promise<object[]>,
): void {
  runProgram(async () => {
    const items = await withServices(read);
    console.log(JSON.stringify({ [name]: items }));
  });
}

/** Becomes a time once it is known in which time zone a date is meant. */
export type TimeOption = (timeZone: string) => Date;

/** Parses an option that is a time as the API reads it. @param moment of its day that a date without a time means */
export function parseTimeOption(moment: MomentOfDay): (text: string) => TimeOption {
  return (text) => {
    const parse: TimeOption = (timeZone) => {
      const time = toTime(moment)(text, timeZone);
      if (!(time instanceof Date)) {
        throw new InvalidArgumentError('must be an ISO 8601 time such as 2026-01-31T12:00:00Z');
      }
      if (Number(time) < EARLIEST_TIME || Number(time) > LATEST_TIME) {
        throw new InvalidArgumentError('must be in the years 1 to 9999 in every time zone');
      }
      return time;
    };
    parse('UTC');
    return parse;
  };
}

/** Parses an option that is an address which stored ones are compared with. */
export function parseEmailKey(text: string): string {
  const key = findEmailKey(text);
  if (key === undefined) throw new InvalidArgumentError('is not an e-mail address');
  return key;
}

/** Warns whoever has just let a user into a store. */
export function warnOfUnconfirmedAddress(email: string): void {
  console.error(
    `${email} was never confirmed, by a link in an e-mail or by a company: make sure that whoever made the account is the person you mean.`,
  );
}

/** Warns whoever has just made a token, or an address unconfirmed, that tokens end once the user shows that it is theirs. */
export function warnOfTokenEnd(email: string): void {
  console.error(
    `${email} was never confirmed, so the API tokens of the user end at the first sign-in with a company, or with a password that is set by a link. If you know that the address is theirs, keep the tokens: inkpad user:set-email --email ${email} --to ${email} --confirmed`,
  );
}

export function parsePositive(text: string): number {
  const number = Number(normalizeNumber(text));
  if (!Number.isSafeInteger(number) || number < 1) {
    throw new InvalidArgumentError('must be a positive integer');
  }
  return number;
}
