import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { KeyedRequest } from '#kernel/aggregate.js';
import { fingerprint } from '#kernel/sealing.js';
import { ask } from '#database/connection.js';
import type { SealedColumn } from '#database/sealed-column.js';
import { MasterKeys } from '#database/master-keys.js';
import type { SealedResponse } from './event-store.js';
import { refusalOf } from './refusals.js';

/** After this time without an answer, another request with the same key takes over. */
const HELD_SECONDS = 10;
const PRUNED_AT_ONCE = 1_000;

const PURPOSE = 'kept answers';

export const STORED_RESPONSES_COLUMN: SealedColumn = {
  name: 'stored responses',
  table: 'es.outcomes',
  column: 'answer',
  id: 'key',
  idType: 'bytea',
  purpose: PURPOSE,
  contextOf: (key) => contextOf(key as Buffer),
};

export type StoredResponse = { status: number; body: unknown };

/** The state of the first request with the key. */
export type Begun =
  { state: 'ours' } | { state: 'running' | 'other' } | ({ state: 'done' } & StoredResponse);

const BEGIN = {
  name: 'outcomes_begin',
  text: 'select state, status, answer from es.begin_outcome($1, $2, $3, $4)',
};
const KEEP = {
  name: 'outcomes_keep',
  text: 'select es.keep_outcomes($1, null)',
};
const RELEASE = {
  name: 'outcomes_release',
  text: `delete from es.outcomes
         where key = $1 and holder = $2 and status is null and intent is null`,
};
const PRUNE = {
  name: 'outcomes_prune',
  text: `delete from es.outcomes where key in (
           select key from es.outcomes where expires_at < now() and intent is null
           order by expires_at limit ${PRUNED_AT_ONCE})`,
};

/**
 * Responses stored under Idempotency-Keys (contract section 1). One that reports a commit is written in that
 * commit, so that neither exists without the other; all others are written by `store`.
 */
@Injectable()
export class StoredResponses {
  constructor(
    private readonly pool: Pool,
    private readonly masterKeys: MasterKeys,
  ) {}

  /** Keys and bodies are stored only as this hash. */
  fingerprint(...parts: (string | number)[]): Buffer {
    return fingerprint(this.masterKeys.dataKey('idempotency keys'), ...parts);
  }

  /** @param request fingerprint of the body */
  async begin(keyed: KeyedRequest, request: Buffer): Promise<Begun> {
    const [row] = await ask<{
      state: Begun['state'];
      status: number | null;
      answer: Buffer | null;
    }>(this.pool, { ...BEGIN, values: [keyed.key, request, keyed.holder, HELD_SECONDS] });
    if (!row) throw new Error('es.begin_outcome returned no state');
    if (row.state !== 'done') return { state: row.state };
    if (row.status === null || !row.answer) throw new Error('a stored response is complete');
    const text = this.masterKeys.open(PURPOSE, row.answer, contextOf(keyed.key)).toString();
    return {
      state: 'done',
      status: row.status,
      body: text === '' ? undefined : (JSON.parse(text) as unknown),
    };
  }

  /** For the commit that it reports. */
  sealed(keyed: KeyedRequest, stream: string, body: unknown): SealedResponse {
    const { key, holder, status } = keyed;
    const answer = this.masterKeys.seal(PURPOSE, Buffer.from(textOf(body)), contextOf(key));
    return { key, holder, stream, status, answer };
  }

  /**
   * For a response without events; with a client, in its transaction.
   * @throws KeyTakenOverError then nothing may be committed
   */
  async store(
    keyed: KeyedRequest,
    { status, body }: StoredResponse,
    client: { query: (statement: { text: string; values: unknown[] }) => Promise<unknown> } = this
      .pool,
  ): Promise<void> {
    const response = this.sealed({ ...keyed, status }, '', body);
    try {
      await client.query({ ...KEEP, values: [responseArgument([response])] });
    } catch (error) {
      throw refusalOf(error);
    }
  }

  /** Nothing was done: the next request with the key counts as the first. */
  async release({ key, holder }: KeyedRequest): Promise<void> {
    await this.pool.query({ ...RELEASE, values: [key, holder] });
  }

  /** Deletes expired responses. @returns whether there may be more */
  async prune(): Promise<boolean> {
    const { rowCount } = await this.pool.query(PRUNE);
    return rowCount === PRUNED_AT_ONCE;
  }
}

/** What `es.keep_outcomes` takes. */
export function responseArgument(responses: SealedResponse[] | undefined): string | null {
  if (!responses?.length) return null;
  return JSON.stringify(
    responses.map(({ key, holder, stream, status, answer }) => ({
      k: key.toString('hex'),
      o: holder,
      s: stream,
      c: status,
      b: answer.toString('hex'),
    })),
  );
}

function textOf(body: unknown): string {
  return body === undefined ? '' : JSON.stringify(body);
}

function contextOf(key: Buffer): string {
  return `answer ${key.toString('hex')}`;
}
