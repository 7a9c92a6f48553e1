import { ConfigError, UnreachableError } from './config-error.js';
import { getMessageWithCause, UnavailableError } from './errors.js';
import { describeFileError } from './file-errors.js';

/** EX_CONFIG of sysexits.h: a supervisor need not try again before somebody has changed a setting. */
const EXIT_CONFIG = 78;

/** Describes an error that an operator can fix; undefined for a bug, which needs its stack. */
export function describeStartError(error: unknown): string | undefined {
  if (error instanceof ConfigError) return error.message;
  if (error instanceof UnavailableError) return `${getMessageWithCause(error)}.`;
  const description = describeFileError(error);
  if (description === undefined) return undefined;
  const { path, message } = error as NodeJS.ErrnoException;
  return `${path ?? message}: ${description}.`;
}

/** Exits a process that could not start, and prints the reason last. */
export function refuseToStart(error: unknown): never {
  console.error(describeStartError(error) ?? error);
  const isConfigError = error instanceof ConfigError && !(error instanceof UnreachableError);
  process.exit(isConfigError ? EXIT_CONFIG : 1);
}
