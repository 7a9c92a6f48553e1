import { ConfigError, UnreachableError } from './config-error.js';
import { getMessageWithCause, UnavailableError } from './errors.js';
import { describeFileError } from './file-errors.js';

/** EX_CONFIG of sysexits.h: a supervisor need not try again before somebody has changed a setting. */
const EXIT_CONFIG = 78;

/** For a person to act on; undefined for a fault of our own, which cannot be found without its stack. */
export function describeStartError(error: unknown): string | undefined {
  if (error instanceof ConfigError) return error.message;
  if (error instanceof UnavailableError) return `${getMessageWithCause(error)}.`;
  const description = describeFileError(error);
  if (description === undefined) return undefined;
  const { path, message } = error as NodeJS.ErrnoException;
  return `${path ?? message}: ${description}.`;
}

/** Ends a process that could not start: what is wrong stands last. */
export function refuseToStart(error: unknown): never {
  console.error(describeStartError(error) ?? error);
  const isConfigError = error instanceof ConfigError && !(error instanceof UnreachableError);
  process.exit(isConfigError ? EXIT_CONFIG : 1);
}
