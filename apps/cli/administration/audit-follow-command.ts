import { once } from 'node:events';
import { fstatSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { Logger } from '@nestjs/common';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { ConfigError } from '#platform/kernel/config-error.js';
import { pause } from '#platform/kernel/pause.js';
import { listenForStop } from '#platform/kernel/stop.js';
import { retryUntilAborted } from '#platform/event-store/log/follow-log.js';
import { FollowedEntries } from '#loyalty/history/followed-entries.service.js';
import {
  FOLLOWED_KINDS,
  formatFollowCursor,
  parseFollowCursor,
  type FollowCursor,
  type FollowedKind,
} from '#loyalty/history/follow-cursor.js';
import { runProgram } from '../run-program.js';
import { withServices } from '../command-services.js';
import { addExamples } from '../command-line.js';

const POLL_INTERVAL_MS = 1_000;

type FollowOptions = { kind: FollowedKind; from: FollowCursor | 'start' | 'end'; until?: 'end' };

/** Adds the command that passes the audit log or the history on to another system. */
export function addAuditFollowCommand(program: Command): void {
  addExamples(
    program
      .command('audit:follow')
      .description(
        'prints audit entries or the history of all stores as JSON lines, and goes on with new ones until it is stopped',
      )
      .addOption(
        new Option('--kind <kind>', 'what to follow').choices(FOLLOWED_KINDS).default('audit'),
      )
      .option(
        '--from <cursor>',
        'the cursor of the last line that was processed; or start, or end for new entries only',
        parseFrom,
        'start',
      )
      .addOption(new Option('--until <end>', 'stop at the last entry instead').choices(['end'])),
    'audit:follow --from start',
    'audit:follow --kind history --from history~41~0198f3c4-7c2e-7d3a-9b1f-2f6f0a4b8c55',
  ).action((options: FollowOptions) => runProgram(() => follow(options)));
}

async function follow({ kind, from, until }: FollowOptions): Promise<void> {
  if (typeof from === 'object' && from.kind !== kind) {
    throw new ConfigError(
      `${formatFollowCursor(from)} is a cursor of another kind: add --kind ${from.kind}.`,
    );
  }
  const { signal } = listenForStop();
  const output = new LineOutput(signal);
  await withServices(async (app) => {
    const entries = app.get(FollowedEntries);
    let last = await findStart(entries, kind, from);
    let lost: FollowCursor | undefined;
    await retryUntilAborted(new Logger('audit:follow'), output.ended, async (onSuccess) => {
      while (!output.ended.aborted) {
        const next = await entries.readNext(kind, last);
        // Afterwards: by then the database is the one that these entries are from.
        if (last && (await entries.isLost(last))) {
          lost = last;
          return output.end();
        }
        onSuccess();
        for (const { cursor, json } of next) {
          if (!(await output.write(`${JSON.stringify(json)}\n`))) return;
          last = cursor;
        }
        if (next.length > 0) continue;
        if (until === 'end') return output.end();
        await pause(POLL_INTERVAL_MS, output.ended);
      }
    });
    if (lost) throw createLostError(lost);
  });
  // A reader that has stopped reading must not keep the process.
  process.exit(0);
}

/** @throws ConfigError when the database does not have the entry of the cursor, such as after a restore */
async function findStart(
  entries: FollowedEntries,
  kind: FollowedKind,
  from: FollowOptions['from'],
): Promise<FollowCursor | null> {
  if (await entries.areOfAnotherServer()) {
    throw new ConfigError(
      'The audit log was written by another server, as after restoring a dump: run inkpad rebase-positions first.',
    );
  }
  if (from === 'start') return null;
  if (from === 'end') return entries.findLast(kind);
  if (await entries.has(from)) return from;
  throw createLostError(from);
}

function createLostError(cursor: FollowCursor): ConfigError {
  const table =
    cursor.kind === 'history' ? ' The table may be being filled again: then try again later.' : '';
  return new ConfigError(
    `This database has no entry at ${formatFollowCursor(cursor)}, as after restoring a backup, or after a failover that has lost the last commits.${table} Otherwise begin with --from start: each entry has an id by which to recognise those that you have.`,
  );
}

/**
 * Opens standard output. A pipe gets a socket of its own: `process.stdout` blocks the whole process while a pipe is full, and
 * then no signal would stop it.
 */
function openOutput(): Writable {
  const status = fstatSync(1);
  return status.isFIFO() || status.isSocket()
    ? new Socket({ fd: 1, readable: false, writable: true })
    : process.stdout;
}

/** Writes lines to standard output, no faster than they are read. */
class LineOutput {
  private readonly stream = openOutput();
  private readonly ending = new AbortController();
  /** Aborts when the process has to stop, or nobody reads any more (EPIPE). */
  readonly ended: AbortSignal;

  constructor(signal: AbortSignal) {
    this.ended = AbortSignal.any([signal, this.ending.signal]);
    this.stream.on('error', () => this.ending.abort());
  }

  /** Writes a line, and waits while the reader is behind. @returns false when there is nobody to write for */
  async write(line: string): Promise<boolean> {
    if (this.ended.aborted) return false;
    if (this.stream.write(line)) return true;
    await once(this.stream, 'drain', { signal: this.ended }).catch(() => undefined);
    return !this.ended.aborted;
  }

  /** Ends when everything is written. */
  async end(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.stream.end(resolve);
      this.ended.addEventListener('abort', () => resolve(), { once: true });
    });
    this.ending.abort();
  }
}

function parseFrom(text: string): FollowOptions['from'] {
  if (text === 'start' || text === 'end') return text;
  const cursor = parseFollowCursor(text);
  if (cursor) return cursor;
  throw new InvalidArgumentError('must be start, end, or the cursor of a line');
}
