import { createReadStream, existsSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import type { INestApplicationContext } from '@nestjs/common';
import type { Command } from 'commander';
import pg from 'pg';
import { Config } from '#configuration/config.js';
import { ConfigError } from '#platform/kernel/config-error.js';
import { UnavailableError } from '#platform/kernel/errors.js';
import { EventStore } from '#platform/event-store/port/event-store.js';
import { EventTypes } from '#platform/event-store/port/event-types.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { Checkpoints } from '#outbound/transparency/checkpoints.service.js';
import { StoreExport } from '#outbound/transparency/store-export.service.js';
import { StoreImport } from '#outbound/transparency/store-import.service.js';
import { Tree } from '#outbound/transparency/tree.service.js';
import { readModels } from '../../read-models.js';
import { parsePositive } from './command.js';
import { runProgram } from '../run-program.js';
import { withServices } from '../command-services.js';
import { parseVerifierKey } from '../verification/verify-checkpoints.js';

/** Takes the history of a store from one instance to another. */
export function addHistoryCommands(program: Command): void {
  program
    .command('history:export')
    .description('writes the history of a store with proofs, one JSON object per line')
    .requiredOption('--account <id>', 'the store', parsePositive)
    .requiredOption('--out <file>', 'must not exist yet')
    .option(
      '--personal',
      'includes the keys of its customers: the file then reveals all their personal data',
    )
    .action((options: { account: number; out: string; personal?: boolean }) => {
      runProgram(async () => {
        const { account, out, personal = false } = options;
        const written = await withServices((app) => write(app, { account, out, personal }));
        console.log(JSON.stringify(written));
      });
    });

  program
    .command('history:import')
    .description(
      'imports a store that history:export --personal has exported from another instance',
    )
    .requiredOption('--in <file>', 'the file that history:export has written')
    .requiredOption('--key <key>', 'verifier key of the other instance, or a file that holds it')
    .action((options: { in: string; key: string }) => {
      runProgram(async () => {
        if (!existsSync(options.in)) throw new ConfigError(`--in: ${options.in} does not exist`);
        const verifier = parseVerifierKey(options.key);
        const lines = () =>
          createInterface({ input: createReadStream(options.in), crlfDelay: Infinity });
        const done = await withServices((app) => createImport(app).run(lines, verifier));
        const { accountId, events, streams, customers } = done;
        console.log(JSON.stringify({ account_id: accountId, events, streams, customers }));
        console.error('The store has no members yet: add the first one with member:add.');
      });
    });
}

function createImport(app: INestApplicationContext): StoreImport {
  return new StoreImport(
    app.get(pg.Pool),
    app.get(EventStore),
    app.get(PersonalKeys),
    app.get(EventTypes),
    readModels,
  );
}

/** Writes a file, under another name until it is complete, so that no half a file is taken for a whole one. */
async function write(
  app: INestApplicationContext,
  { account, out, personal }: { account: number; out: string; personal: boolean },
): Promise<object> {
  if (existsSync(out)) throw new ConfigError(`--out: ${out} exists already`);
  const pool = app.get(pg.Pool);
  const exporting = new StoreExport(
    pool,
    app.get(EventStore),
    app.get(PersonalKeys),
    new Tree(pool),
    new Checkpoints(pool, app.get(Config)),
  );
  const draft = `${out}.${process.pid}.part`;
  const file = await open(draft, 'wx', 0o600);
  let events = 0;
  try {
    for await (const line of exporting.exportLines(account, personal)) {
      if ('event' in line) events++;
      // Unlike `write`, it fails when the disk takes a part only.
      await file.writeFile(`${JSON.stringify(line)}\n`);
    }
    await file.sync();
    await file.close();
    await rename(draft, out);
  } catch (error) {
    await file.close().catch(() => undefined);
    await rm(draft, { force: true });
    if (!(error instanceof UnavailableError)) throw error;
    throw new ConfigError(`${error.message}: is a dispatcher running that signs checkpoints?`, {
      cause: error,
    });
  }
  return { account_id: account, events, personal, file: out };
}
