import { ConfigError, UnreachableError } from './config-error.js';
import { getErrorMessage, getMessageWithCause, UnavailableError } from './errors.js';
import { describeFileError } from './file-errors.js';
import { renderLogLine, renderStack, type Reporter } from './log-lines.js';
import { flushLines } from './line-writer.js';

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
export function refuseToStart(error: unknown, reporter: Reporter): never {
  printFailure(error, describeStartError(error), reporter);
  const isConfigError = error instanceof ConfigError && !(error instanceof UnreachableError);
  process.exit(isConfigError ? EXIT_CONFIG : 1);
}

/**
 * Makes a process report errors that nobody has handled in the format of its log, and then exit: Node.js would print
 * them in several lines, and with properties that hold values of statements. Warnings of Node.js get that format too.
 */
export function reportUnhandled(reporter: Reporter): void {
  process.on('uncaughtException', (error) => {
    printFailure(error, undefined, reporter);
    process.exit(1);
  });
  if (reporter.format === 'text') return;
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => {
    const line = {
      level: 'warn',
      program: reporter.program,
      message: `${name}: ${message}`,
    } as const;
    process.stderr.write(`${renderLogLine(line)}\n`);
  });
}

/** Prints an error that ends the process. @param description in one sentence; undefined for a bug, which shows its stack */
export function printFailure(
  error: unknown,
  description: string | undefined,
  { program, format }: Reporter,
): void {
  flushLines();
  if (format === 'text') {
    console.error(description ?? renderStack(error));
    return;
  }
  const message = description ?? getErrorMessage(error);
  const stack = description === undefined ? renderStack(error) : undefined;
  process.stderr.write(`${renderLogLine({ level: 'fatal', program, message, stack })}\n`);
}
