import type { Command } from 'commander';

const EXIT_USAGE = 2;

/**
 * Ends a process that is called wrongly with 2 and one line on standard error. The line is text whatever the format of
 * the log is: it is meant for the person who types.
 */
export function reportUsageErrors(command: Command): Command {
  return command
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : EXIT_USAGE))
    .configureOutput({
      outputError: (text, write) =>
        write(`${text.trim().replaceAll('\n', ' ')} (--help shows how to call it)\n`),
    });
}

/** Adds examples below the options in --help. */
export function addExamples(command: Command, ...lines: string[]): Command {
  const text = lines.map((line) => `  inkpad ${line}`).join('\n');
  return command.addHelpText('after', `\nExample${lines.length > 1 ? 's' : ''}:\n${text}`);
}
