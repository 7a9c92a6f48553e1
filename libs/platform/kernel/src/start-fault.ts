import { ConfigError, UnreachableError } from './config-error.js';
import { messageWithCause, UnavailableError } from './errors.js';
import { fileFault } from './file-faults.js';

/** EX_CONFIG of sysexits.h: a supervisor need not try again before somebody has changed a setting. */
const EXIT_UNUSABLE = 78;

/** For a person to act on; undefined for a fault of our own, which cannot be found without its stack. */
export function inOneSentence(error: unknown): string | undefined {
  if (error instanceof ConfigError) return error.message;
  if (error instanceof UnavailableError) return `${messageWithCause(error)}.`;
  const fault = fileFault(error);
  if (fault === undefined) return undefined;
  const { path, message } = error as NodeJS.ErrnoException;
  return `${path ?? message}: ${fault}.`;
}

/** Ends a process that could not start: what is wrong stands last. */
export function refuseToStart(error: unknown): never {
  console.error(inOneSentence(error) ?? error);
  const isUnusable = error instanceof ConfigError && !(error instanceof UnreachableError);
  process.exit(isUnusable ? EXIT_UNUSABLE : 1);
}
