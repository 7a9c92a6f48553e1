/**
 * Renders lines of `npm start` and of the launcher of commands in the format of LOG_FORMAT. Both run before anything is
 * built, so they cannot import kernel/log-lines.ts, which renders those of all other programs.
 */

/** Tells whether each line has to be a JSON object. Settings of .env count once they are read. */
export function logsJson() {
  const format = process.env.LOG_FORMAT?.trim();
  return format === 'json' || (format !== 'text' && process.env.NODE_ENV === 'production');
}

/**
 * Renders a line of a program's log. One that is an object already stays as it is.
 * @param {string} program
 * @param {string} message
 * @param {'fatal' | 'error' | 'info'} [level]
 */
export function renderLogLine(program, message, level = 'info') {
  if (parseLogLine(message)) return message;
  const time = new Date().toISOString();
  return JSON.stringify({ time, level, process: program, pid: process.pid, message });
}

/** Renders a line of one of several programs, with its name. @param {'fatal' | 'error' | 'info'} [level] */
export function renderOutput(program, line, level) {
  return logsJson() ? renderLogLine(program, line, level) : `${program.padEnd(10)} | ${line}`;
}

/**
 * Prints an error that ends a command before its program runs. The CLI has no log: its output belongs to whoever calls it.
 * @param {string} program
 * @param {string} message
 */
export function printFailure(program, message) {
  const isLogged = program !== 'cli' && logsJson();
  process.stderr.write(`${isLogged ? renderLogLine(program, message, 'fatal') : message}\n`);
}

/**
 * Turns the lines of a log into text: of a JSON object the message and the stack.
 * @param {string[]} lines
 */
export function toTextLines(lines) {
  return lines.flatMap((line) => {
    const { message, stack } = parseLogLine(line) ?? { message: line };
    return `${stack ?? message}`.split('\n');
  });
}

/** @param {string} line @returns {{ message: string, stack?: string } | null} null for any other text */
function parseLogLine(line) {
  if (!line.startsWith('{')) return null;
  try {
    const parsed = JSON.parse(line);
    return typeof parsed.message === 'string' ? parsed : null;
  } catch {
    return null;
  }
}
