import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { KeyedRequest } from '#kernel/aggregate.js';
import { fingerprint } from '#kernel/sealing.js';
import { query } from '#database/connection.js';
import type { SealedColumn } from '#database/sealed-column.js';
import { MasterKeys } from '#database/master-keys.js';
import { ProcessSession } from '#database/process-session.js';
import type { SealedResponse } from '../port/event-store.js';
import { PersonalKeys, type KeyQuery } from '../personal-keys/personal-keys.js';
import { toCommitError } from '../port/refusals.js';

/** After this time without a response, another request with the same key takes over: at once if the process has died. */
const LEASE_SECONDS = 10;
const PRUNE_BATCH_SIZE = 1_000;

const PURPOSE = 'stored responses';

export const STORED_RESPONSES_COLUMN: SealedColumn = {
  name: 'stored responses',
  table: 'es.stored_responses',
  column: 'response',
  id: 'key',
  idType: 'bytea',
  purpose: PURPOSE,
  getContext: (key) => getSealContext(key as Buffer),
};

export type StoredResponse = { status: number; body: unknown };

/** The state of the first request with the key. `erased`: its response was about a person who has been erased since. */
export type IdempotencyKeyState =
  | { state: 'ours' }
  | { state: 'running' }
  | { state: 'other' }
  | { state: 'erased' }
  | ({ state: 'done' } & StoredResponse);

type Client = {
  query: (statement: { text: string; values: unknown[] }) => Promise<unknown>;
};

/**
 * First byte of a response that is sealed with a person's key inside, which that person's id follows. What is sealed may
 * begin with it again, with another person's key. No JSON text begins with it.
 */
const PERSONAL = 1;
/** Length of that byte and the person's id. */
const PERSONAL_BYTES = 9;

const CLAIM_KEY = {
  name: 'stored_responses_claim',
  text: 'select state, status, response from es.claim_idempotency_key($1, $2, $3, $4, $5)',
};
const SAVE = {
  name: 'stored_responses_save',
  text: 'select es.save_responses($1, null)',
};
const RELEASE = {
  name: 'stored_responses_release',
  text: `delete from es.stored_responses
         where key = $1 and holder = $2 and status is null and intent is null`,
};
/**
 * Repeats the condition in both queries: when a key is used again while the deletion waits for its row, the outer one
 * checks it once more.
 */
const PRUNE = {
  name: 'stored_responses_prune',
  text: `delete from es.stored_responses where expires_at < now() and intent is null and key in (
           select key from es.stored_responses where expires_at < now() and intent is null
           order by expires_at limit ${PRUNE_BATCH_SIZE})`,
};

/**
 * Saves responses under Idempotency-Keys (RETRY-03). A response that reports a commit is written in that commit, so
 * that neither exists without the other; `save` writes all others.
 */
@Injectable()
export class StoredResponses {
  constructor(
    private readonly pool: Pool,
    private readonly masterKeys: MasterKeys,
    private readonly keys: PersonalKeys,
    private readonly session: ProcessSession,
  ) {}

  /** Returns the hash under which keys and bodies are stored. Neither is stored in plain text. */
  fingerprint(...parts: (string | number)[]): Buffer {
    return fingerprint(this.masterKeys.getDataKey('idempotency keys'), ...parts);
  }

  /**
   * Claims a key for a request, or returns what its first request has come to.
   * @param request fingerprint of the body
   */
  async claimKey(keyed: KeyedRequest, request: Buffer): Promise<IdempotencyKeyState> {
    const [row] = await query<{
      state: IdempotencyKeyState['state'];
      status: number | null;
      response: Buffer | null;
    }>(this.pool, {
      ...CLAIM_KEY,
      values: [keyed.key, request, keyed.holder, LEASE_SECONDS, this.session.leaseHolder],
    });
    if (!row) throw new Error('es.claim_idempotency_key returned no state');
    if (row.state !== 'done') return { state: row.state };
    if (row.status === null || !row.response) throw new Error('a stored response is complete');
    const stored = this.masterKeys.open(PURPOSE, row.response, getSealContext(keyed.key));
    const text = await this.decode(keyed.key, stored);
    if (text === undefined) return { state: 'erased' };
    return {
      state: 'done',
      status: row.status,
      body: text === '' ? undefined : (JSON.parse(text) as unknown),
    };
  }

  /** Seals a response for the commit that it reports. */
  async seal(
    keyed: KeyedRequest,
    stream: string,
    body: unknown,
    queryKeys?: KeyQuery,
  ): Promise<SealedResponse> {
    const { key, holder, status, storedOnlyFields } = keyed;
    const stored = storedOnlyFields ? { ...(body as object), ...storedOnlyFields } : body;
    const plain = await this.encode(keyed, toText(stored), queryKeys);
    return {
      key,
      holder,
      stream,
      status,
      body: this.masterKeys.seal(PURPOSE, plain, getSealContext(key)),
    };
  }

  /**
   * Encodes a response before the master key seals it. A success that is about people is sealed with the key of each of
   * them first; a refusal holds no personal data. When one of them was erased before, there is no sealed text.
   */
  private async encode(
    {
      key,
      status,
      subjectId,
      subjectIds = subjectId === undefined ? [] : [subjectId],
    }: KeyedRequest,
    text: string,
    queryKeys: KeyQuery | undefined,
  ): Promise<Buffer> {
    let encoded = Buffer.from(text);
    if (text === '' || status >= 400) return encoded;
    for (const id of subjectIds) {
      const head = Buffer.alloc(PERSONAL_BYTES);
      head.writeUInt8(PERSONAL);
      head.writeBigUInt64BE(BigInt(id), 1);
      const sealed = await this.keys.sealText(id, encoded, getSealContext(key), queryKeys);
      if (!sealed) return head;
      encoded = Buffer.concat([head, sealed]);
    }
    return encoded;
  }

  /** Decodes a response; undefined when a person whom it is about was erased. */
  private async decode(key: Buffer, stored: Buffer): Promise<string | undefined> {
    let encoded = stored;
    while (encoded[0] === PERSONAL) {
      const subjectId = Number(encoded.readBigUInt64BE(1));
      const sealed = encoded.subarray(PERSONAL_BYTES);
      if (sealed.length === 0) return undefined;
      const [opened] = await this.keys.openAll([
        { subjectId, sealed, context: getSealContext(key) },
      ]);
      if (!opened) return undefined;
      encoded = opened;
    }
    return encoded.toString();
  }

  /**
   * Saves a response without events; with a client, in its transaction.
   * @throws KeyTakenOverError then nothing may be committed
   */
  async save(
    keyed: KeyedRequest,
    { status, body }: StoredResponse,
    client?: Client,
  ): Promise<void> {
    // A transaction must not wait for a second connection: all others may be waiting as well.
    const queryKeys: KeyQuery | undefined =
      client &&
      (async (statement) => (await client.query(statement)) as Awaited<ReturnType<KeyQuery>>);
    const response = await this.seal({ ...keyed, status }, '', body, queryKeys);
    try {
      await (client ?? this.pool).query({ ...SAVE, values: [toResponseArgument([response])] });
    } catch (error) {
      throw toCommitError(error);
    }
  }

  /** Releases the key of a request that did nothing: the next request with it counts as the first. */
  async release({ key, holder }: KeyedRequest): Promise<void> {
    await this.pool.query({ ...RELEASE, values: [key, holder] });
  }

  /** Deletes expired responses. @returns whether there may be more */
  async prune(): Promise<boolean> {
    const { rowCount } = await this.pool.query(PRUNE);
    return rowCount === PRUNE_BATCH_SIZE;
  }
}

/** Builds the argument of `es.save_responses`. */
export function toResponseArgument(responses: SealedResponse[] | undefined): string | null {
  if (!responses?.length) return null;
  return JSON.stringify(
    responses.map(({ key, holder, stream, status, body }) => ({
      k: key.toString('hex'),
      o: holder,
      s: stream,
      c: status,
      b: body.toString('hex'),
    })),
  );
}

function toText(body: unknown): string {
  return body === undefined ? '' : JSON.stringify(body);
}

function getSealContext(key: Buffer): string {
  return `response ${key.toString('hex')}`;
}
