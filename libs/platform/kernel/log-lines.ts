import { basename } from 'node:path';
import { trimText } from './text.js';

export type LogFormat = 'json' | 'text';

/** Finds the format of log lines before the settings are checked, which may be invalid. */
export function findLogFormat(environment: NodeJS.ProcessEnv): LogFormat {
  const format = trimText(environment['LOG_FORMAT'] ?? '');
  if (format === 'json' || format === 'text') return format;
  return environment['NODE_ENV'] === 'production' ? 'json' : 'text';
}

/** @property program such as api or migrate */
export type Reporter = { program: string; format: LogFormat };

/** Programs whose output belongs to whoever calls them, and to no log. */
const OWN_OUTPUT = new Set(['cli', 'setup']);

/** Finds how this command reports: on a terminal in text, like all whose output belongs to their caller. */
export function findCommandReporter(): Reporter {
  const program = basename(process.argv[1] ?? '', '.js');
  const isLogged = !OWN_OUTPUT.has(program) && !process.stderr.isTTY;
  return { program, format: isLogged ? findLogFormat(process.env) : 'text' };
}

export type LogLine = {
  level: 'fatal' | 'error' | 'warn' | 'info' | 'debug';
  program: string;
  message: string;
  context?: string;
  stack?: string | undefined;
};

/** Renders a line as LOG_FORMAT=json has it, for what is written without a logger. */
export function renderLogLine({ level, program, message, context, stack }: LogLine): string {
  const time = new Date().toISOString();
  return JSON.stringify({
    time,
    level,
    process: program,
    pid: process.pid,
    ...(context !== undefined && { context }),
    message,
    stack,
  });
}

/** Renders the stack of an error and of its causes, without their properties: those may hold values of statements. */
export function renderStack(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const causes: unknown[] = error instanceof AggregateError ? [...error.errors] : [];
  if (error.cause !== undefined) causes.push(error.cause);
  return [
    error.stack ?? error.message,
    ...causes.map((cause) => `Caused by: ${renderStack(cause)}`),
  ].join('\n');
}
