import { CommandBus } from '@nestjs/cqrs';
import type { INestApplicationContext } from '@nestjs/common';
import { createInterface } from 'node:readline';
import { Pool } from 'pg';
import { NotFoundError } from '#platform/kernel/errors.js';
import { EraseCustomer } from '#loyalty/customers/erasing.commands.js';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';

const BATCH_SIZE = 1_000;

type Erased = { account_id: number; customer_id: number };

/** @property unknown how many of the list are not in this database: the backup is from before they came */
export type Repeated = { erased: number; unknown: number };

/** Lists everybody who was erased, oldest id first; nothing personal. */
export async function* listErasures(pool: Pool): AsyncGenerator<Erased & { erased_at: Date }> {
  for (let after = 0; ;) {
    const { rows } = await pool.query<Erased & { erased_at: Date }>(
      `select account_id, subject_id as customer_id, erased_at from es.erasures
       where subject_id > $1 order by subject_id limit ${BATCH_SIZE}`,
      [after],
    );
    yield* rows;
    const last = rows.at(-1);
    if (!last) return;
    after = last.customer_id;
  }
}

/** The history may be newer than the database that was restored: their key came back, their event is still there. */
const COME_BACK = `
  select c.account_id, c.id as customer_id from customers c
  join personal_keys k on k.subject_id = c.id
  where c.erased_at is not null and c.id > $1 order by c.id limit ${BATCH_SIZE}`;

/** Erases whoever came back with a backup: all on the list, and those whom the history says were erased. */
export async function repeatErasures(
  app: INestApplicationContext,
  by: AuditedWriter,
  list: AsyncIterable<string>,
): Promise<Repeated> {
  const bus = app.get(CommandBus);
  const repeated: Repeated = { erased: 0, unknown: 0 };
  const erase = async ({ account_id: accountId, customer_id: customerId }: Erased) => {
    try {
      await bus.execute(new EraseCustomer({ ...by, accountId }, customerId));
      repeated.erased++;
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
      repeated.unknown++;
    }
  };
  for await (const line of list) {
    const erased = parseErasure(line);
    if (erased) await erase(erased);
  }
  for (let after = 0; ;) {
    const { rows } = await app.get(Pool).query<Erased>(COME_BACK, [after]);
    for (const row of rows) await erase(row);
    const last = rows.at(-1);
    if (!last) return repeated;
    after = last.customer_id;
  }
}

/** Reads the lines of standard input; none when it is a terminal. */
export function readInputLines(): AsyncIterable<string> {
  const { stdin } = process;
  return stdin.isTTY ? (async function* () {})() : createInterface({ input: stdin });
}

/** Parses an erasure. Any line that is none is ignored, so that a whole log may be given. */
function parseErasure(line: string): Erased | undefined {
  let content: unknown;
  try {
    content = JSON.parse(line);
  } catch {
    return undefined;
  }
  const { account_id, customer_id, message } = Object(content) as Partial<Record<string, unknown>>;
  if (message !== undefined && message !== 'customer erased') return undefined;
  const [account, customer] = [Number(account_id), Number(customer_id)];
  const areIds = [account, customer].every((id) => Number.isSafeInteger(id) && id > 0);
  return areIds ? { account_id: account, customer_id: customer } : undefined;
}
