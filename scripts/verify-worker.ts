import { parentPort } from 'node:worker_threads';
import type { INestApplicationContext } from '@nestjs/common';
import pg from 'pg';
import { EventStore } from '#event-store/event-store.js';
import { PersonalKeys } from '#event-store/personal-keys.js';
import { Rows } from '#event-store/rows.js';
import { Verification, type Slice } from '#event-store/verification.js';
import { rowTables } from '../apps/row-tables.js';
import { withServices } from './run-script.js';

export type Task = Slice & { repair: boolean };

export function verificationIn(app: INestApplicationContext): Verification {
  return new Verification(
    app.get(pg.Pool),
    app.get(EventStore),
    app.get(Rows),
    app.get(PersonalKeys),
    rowTables,
  );
}

/** One slice after the other, as the script asks for them. An error ends the thread and is reported to the script. */
const port = parentPort;
if (port) {
  await withServices(async (app) => {
    const verification = verificationIn(app);
    for (let task = await next(port); task !== null; task = await next(port)) {
      port.postMessage(await verification.slice(task, task.repair));
    }
  });
}

function next(from: NonNullable<typeof port>): Promise<Task | null> {
  return new Promise((resolve) => from.once('message', (task: Task | null) => resolve(task)));
}
