import { ConsoleLogger } from '@nestjs/common';
import type { Config } from './config.js';

/** The framework announces every route and module at each start; nobody reads that. */
const CHATTER = new Set([
  'InstanceLoader',
  'NestApplication',
  'NestFactory',
  'RouterExplorer',
  'RoutesResolver',
]);

/** Where all processes log to: standard output, from the configured level on. */
export class Log extends ConsoleLogger {
  constructor(level: Config['logLevel']) {
    const order = ['fatal', 'error', 'warn', 'log', 'debug'] as const;
    const upTo = { silent: 0, fatal: 1, error: 2, warn: 3, info: 4, debug: 5 }[level];
    super({
      logLevels: order.slice(0, upTo),
      colors: process.stdout.isTTY === true,
      prefix: 'inkpad',
    });
  }

  override log(message: unknown, context?: string): void {
    if (context === undefined || !CHATTER.has(context)) super.log(message, context ?? '');
  }
}
