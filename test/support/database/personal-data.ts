import { createDecipheriv } from 'node:crypto';
import { readConfig } from '#configuration/config.js';
import { deriveKey } from '#platform/kernel/sealing.js';
import { DATA_KEY_PURPOSES, MasterKeys } from '#platform/database/master-keys.js';
import { NOBODY } from '#platform/event-store/personal-keys/personal-keys.js';
import { sealedColumns } from '../../../apps/sealed-columns.js';
import type { TestDatabase } from './database.js';
import { readAllEvents, openStore, waitUntilReadable } from './event-store.js';

const PREFIX = { none: 0, keyId: 8, customer: 9 };
const HEAD_BYTES = 28;

/**
 * All that somebody with the database, the event store and MASTER_KEY could read: every column of every table in every
 * schema, the planner's statistics and every event, with everything sealed opened by every key that is still there,
 * whatever it was sealed for.
 * @returns where each of the values stands
 */
export async function findValues(
  environment: NodeJS.ProcessEnv,
  owner: TestDatabase,
  values: string[],
): Promise<string[]> {
  const config = readConfig(environment);
  const opened = await openStore(config);
  const masterKeys = new MasterKeys(opened.pool, config);
  await masterKeys.onModuleInit();
  try {
    const { rows: customers } = await owner.query<{ customer_id: number }>(
      'select subject_id::int as customer_id from personal_keys',
    );
    const ids = customers.map((row) => row.customer_id);
    const keys = [
      ...sealedColumns.map(({ purpose }) => deriveKey(config.masterKey, purpose)),
      ...DATA_KEY_PURPOSES.map((purpose) => masterKeys.getDataKey(purpose)),
      ...(await opened.keys.load([NOBODY, ...ids])).values(),
    ];
    const places = new Set<string>();
    const search = (where: string, text: string) => {
      for (const value of filterContained(text, values, keys)) places.add(`${where}: ${value}`);
    };
    const { rows: tables } = await owner.query<{ name: string }>(
      `select c.oid::regclass::text as name from pg_class c
       join pg_namespace n on n.oid = c.relnamespace
       where c.relkind in ('r', 'm') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
       union all select 'pg_catalog.pg_stats'`,
    );
    for (const { name } of tables) {
      const { rows } = await owner.query<{ text: string }>(`select t::text as text from ${name} t`);
      for (const { text } of rows) search(name, text);
    }
    if (config.eventStoreUrl === null) await waitUntilReadable(owner);
    for (const event of await readAllEvents(opened.store)) {
      search(
        'events',
        JSON.stringify(event, (_, part: unknown) => toJsonValue(part)),
      );
    }
    return [...places].sort();
  } finally {
    await opened.close();
  }
}

function toJsonValue(part: unknown): unknown {
  return typeof part === 'bigint' ? String(part) : part;
}

/** Bytes appear in the text of a row as hex, and in JSON as hex or base64. */
function filterContained(text: string, values: string[], keys: Buffer[]): string[] {
  const texts = [text.toLowerCase()];
  const sealed = [
    ...(text.match(/[0-9a-f]{58,}/g) ?? []).map((hex) => Buffer.from(hex, 'hex')),
    ...(text.match(/[A-Za-z0-9+/]{40,}={0,2}/g) ?? []).map((base64) =>
      Buffer.from(base64, 'base64'),
    ),
  ];
  for (const bytes of sealed) {
    for (const once of decryptUnchecked(bytes, keys)) {
      texts.push(once.toString().toLowerCase());
      // A stored response is sealed twice.
      if (once[0] === 1) {
        for (const twice of decryptUnchecked(once, keys))
          texts.push(twice.toString().toLowerCase());
      }
    }
  }
  return values.filter((value) =>
    texts.some((candidate) => candidate.includes(value.toLowerCase())),
  );
}

/** Without a look at the tag, so that the context in which it was sealed need not be known. */
function decryptUnchecked(sealed: Buffer, keys: Buffer[]): Buffer[] {
  return Object.values(PREFIX).flatMap((skipped) => {
    const bytes = sealed.subarray(skipped);
    if (bytes.length < HEAD_BYTES) return [];
    return keys.map((key) =>
      createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12)).update(
        bytes.subarray(HEAD_BYTES),
      ),
    );
  });
}
