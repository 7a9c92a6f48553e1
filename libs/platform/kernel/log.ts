import { ConsoleLogger } from '@nestjs/common';
import { LineWriter } from './line-writer.js';
import { findCommandReporter, renderLogLine } from './log-lines.js';
import type { PlatformConfig } from './platform-config.js';
import type { ProcessName } from './process-name.js';

/** Contexts of the framework's startup messages, one for every route and module, which are not logged. */
const STARTUP_CONTEXTS = new Set([
  'InstanceLoader',
  'NestApplication',
  'NestFactory',
  'RouterExplorer',
  'RoutesResolver',
]);

/** Context of errors that the framework logs and also throws; start-error.ts prints those last. */
const RETHROWN_CONTEXT = 'ExceptionHandler';

type Fields = Record<string, unknown>;

type Line = Parameters<ConsoleLogger['printAsJson']>[1];

const writers = {
  stdout: new LineWriter(process.stdout),
  stderr: new LineWriter(process.stderr),
};

/** Logs only errors, for commands that print their own output. */
export class CommandLog extends ConsoleLogger {
  private readonly reporter = findCommandReporter();

  constructor() {
    super({ logLevels: ['fatal', 'error'], json: findCommandReporter().format === 'json' });
  }

  override error(message: unknown, ...more: unknown[]): void {
    if (more.at(-1) !== RETHROWN_CONTEXT) super.error(message, ...more);
  }

  protected override printAsJson(
    message: unknown,
    { context = '', errorStack, error }: Line,
  ): void {
    const stack = String(errorStack ?? error?.stack ?? '');
    const line = renderLogLine({
      level: 'error',
      program: this.reporter.program,
      context,
      message: String(message),
      ...(stack !== '' && { stack }),
    });
    process.stderr.write(`${line}\n`);
  }
}

/**
 * Logs to standard output and standard error, from the configured level on. The fields of a line (`log.warn('…', {
 * request_id })`) are in snake_case and follow the message.
 */
export class Log extends ConsoleLogger {
  /** Lines since the last one that were not written, because nobody reads them. */
  private lostCount = 0;

  constructor(
    { logLevel, logFormat }: Pick<PlatformConfig, 'logLevel' | 'logFormat'>,
    private readonly program: ProcessName,
  ) {
    const order = ['fatal', 'error', 'warn', 'log', 'debug'] as const;
    const levelCount = { silent: 0, fatal: 1, error: 2, warn: 3, info: 4, debug: 5 }[logLevel];
    const json = logFormat === 'json';
    super({
      logLevels: order.slice(0, levelCount),
      colors: !json && process.stdout.isTTY === true,
      json,
      prefix: 'inkpad',
    });
  }

  override log(message: unknown, ...more: unknown[]): void {
    const context = more.at(-1);
    if (typeof context === 'string' && STARTUP_CONTEXTS.has(context)) return;
    super.log(message, ...(more.length > 0 ? more : ['']));
  }

  override error(message: unknown, ...more: unknown[]): void {
    if (more.at(-1) !== RETHROWN_CONTEXT) super.error(message, ...more);
  }

  protected override printAsJson(
    message: unknown,
    { context, logLevel, writeStreamType = 'stdout', params, errorStack, error }: Line,
  ): void {
    const line: Fields = {
      time: new Date().toISOString(),
      level: logLevel === 'log' ? 'info' : logLevel,
      process: this.program,
      pid: process.pid,
      ...(context !== '' && { context }),
      message,
    };
    for (const name in params) line[name] ??= params[name];
    line['stack'] = errorStack ?? error?.stack;
    if (this.lostCount > 0) line['lost_lines'] = this.lostCount;
    const isWritten = writers[writeStreamType].write(this.stringifyJsonLogObject(line));
    this.lostCount = isWritten ? 0 : this.lostCount + 1;
    // An error is written at once, after what led to it.
    if (writeStreamType === 'stderr') for (const writer of Object.values(writers)) writer.flush();
  }

  protected override stringifyParams(params: Fields): string {
    return Object.entries(params)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `${name}=${String(value)}`)
      .join(' ');
  }
}
