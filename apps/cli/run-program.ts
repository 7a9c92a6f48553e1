import type { Config } from '#configuration/config.js';
import { UnreachableError } from '#platform/kernel/config-error.js';
import {
  DamagedHistoryError,
  getErrorMessage,
  NotFoundError,
  RejectedError,
} from '#platform/kernel/errors.js';
import { findCommandReporter, renderLogLine } from '#platform/kernel/log-lines.js';
import { describeStartError, printFailure, reportUnhandled } from '#platform/kernel/start-error.js';
import { describeDatabase } from '#platform/database/first-connection.js';
import { isConnectionLoss } from '#platform/database/connection.js';
import { findDatabaseError, SQLSTATE } from '#platform/database/sqlstate.js';

/** Runs a program. An error that the user can fix is printed as one sentence; any other is a bug and shows its stack. */
export function runProgram(work: () => Promise<void>): void {
  const reporter = findCommandReporter();
  reportUnhandled(reporter);
  if (reporter.format === 'json') printLogLines(reporter.program);
  endWithStarter();
  work().catch((error: unknown) => {
    printFailure(error, describeExpectedError(error), reporter);
    // Not exitCode: connections that are still open would keep the process alive.
    process.exit(1);
  });
}

/** Makes the program print each of its messages as a line of a log. */
function printLogLines(program: string): void {
  const print = (stream: NodeJS.WriteStream) => (message: unknown) => {
    stream.write(`${renderLogLine({ level: 'info', program, message: String(message) })}\n`);
  };
  console.log = print(process.stdout);
  console.error = print(process.stderr);
}

/** Ends this process with its parent, which gave it a channel: when the parent is killed, this process would run on. */
function endWithStarter(): void {
  if (!process.channel) return;
  process.once('disconnect', () => process.exit(1));
  process.channel.unref();
}

function describeExpectedError(error: unknown): string | undefined {
  if (error instanceof RejectedError || error instanceof NotFoundError) return error.message;
  if (error instanceof DamagedHistoryError)
    return `${getErrorMessage(error.cause)} (docs/operating/incidents.md, Streams that others have changed)`;
  if (isConnectionLoss(error))
    return `The connection to the database was lost: ${error.message}. Once it is back, run this again.`;
  if (error instanceof UnreachableError) return `${error.message} Once it is back, run this again.`;
  const refused = findDatabaseError(error);
  if (refused?.code === SQLSTATE.insufficientPrivilege) {
    return `The database does not let this user do that: ${refused.message}.`;
  }
  return describeStartError(error);
}

/**
 * Prints which installation is used, so that nobody changes another one than they meant. Standard output is for the
 * result.
 */
export function printInstallation({
  databaseUrl,
  eventStoreUrl,
  publicUrl,
}: Pick<Config, 'databaseUrl' | 'eventStoreUrl' | 'publicUrl'>): void {
  const events =
    eventStoreUrl === null
      ? ''
      : `, events in KurrentDB (EventStoreDB) at ${getHosts(eventStoreUrl)}`;
  console.error(`database: ${describeDatabase(databaseUrl)}${events}; service: ${publicUrl}`);
}

/** Gets the hosts of a connection string, without user and password. */
export function getHosts(eventStoreUrl: string): string {
  return /^[^:]+:\/\/(?:.*@)?([^/?]+)/.exec(eventStoreUrl)?.[1] ?? '';
}
