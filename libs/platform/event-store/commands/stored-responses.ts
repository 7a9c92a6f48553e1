import { Inject, Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { Pool } from 'pg';
import type { KeyedRequest } from '#platform/kernel/aggregate.js';
import type { Awaitable } from '#platform/kernel/awaitable.js';
import { getNowMs } from '#platform/kernel/clock.js';
import { getErrorMessage, InProgressError, UnavailableError } from '#platform/kernel/errors.js';
import { pause } from '#platform/kernel/pause.js';
import { RETRY, retryUntil } from '#platform/kernel/retry-until.js';
import { fingerprint, seal } from '#platform/kernel/sealing.js';
import { Batcher } from '#platform/database/batcher.js';
import {
  awaitQuery,
  isDatabaseUnavailable,
  query,
  queryForGroup,
  type Queryable,
} from '#platform/database/connection.js';
import { REQUEST_LIMITS } from '#platform/database/data-source.js';
import { isFailureToConnect } from '#platform/database/database-client.js';
import type { DatabasePool } from '#platform/database/database-pool.js';
import { runOutside } from '#platform/database/database-waits.js';
import { type SealedColumn, MasterKeys } from '#platform/database/master-keys.js';
import { ProcessSession } from '#platform/database/process-session.js';
import type { SealedResponse } from '../port/event-store.js';
import { PersonalKeys, type KeyQuery } from '../personal-keys/personal-keys.js';
import type { PersonalKey } from '../personal-keys/personal-parts.js';
import { toCommitError } from '../port/commit-errors.js';
import { START_WITHIN_MS } from './lane.js';

/**
 * After this time without a response, another request with the same key takes over: at once if the process has died.
 * Longer than a command waits for another server, which is 10 seconds.
 */
const LEASE_SECONDS = 30;
/**
 * A claim that PostgreSQL begins later than this does nothing: its request has been given up, and nobody would release the
 * key. Not shorter than a request waits for a statement.
 */
const CLAIM_WITHIN_MS = REQUEST_LIMITS.query_timeout;
/** How long a request waits for another one with its key. */
const MAX_WAIT_MS = 10_000;
const POLL_INTERVAL_MS = 100;
const RELEASE_AGAIN_MS = 250;
const PRUNE_BATCH_SIZE = 1_000;
const CLAIM_GROUP_SIZE = 64;

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

/** A key, and the request that holds it. */
type Holding = Pick<KeyedRequest, 'key' | 'holder'>;

/** @property request fingerprint of its body */
type Claim = Holding & { request: Buffer };

/**
 * First byte of a response that is sealed with a person's key inside, which that person's id follows. What is sealed may
 * begin with it again, with another person's key. No JSON text begins with it.
 */
const PERSONAL = 1;
/** Length of that byte and the person's id. */
const PERSONAL_BYTES = 9;

const NO_KEYS = new Map<number, PersonalKey>();

/** A stable condition alone, which PostgreSQL checks before it calls the function. */
const CLAIM_NEW_KEYS = {
  name: 'stored_responses_claim_new',
  text: `select es.claim_new_idempotency_keys($1, $2, $3, $4, $5) as holder where now() <= $6`,
};
const CLAIM_KEY = {
  name: 'stored_responses_claim',
  text: `select state, status, response from es.claim_idempotency_key($1, $2, $3, $4, $5)
         where now() <= $6`,
};
const SAVE = {
  name: 'stored_responses_save',
  text: 'select es.save_responses($1, null)',
};
/** Like a claim, a release waits neither for the disk nor for a standby: one that gets lost ends with its lease. */
const RELEASE = {
  name: 'stored_responses_release',
  text: `with setting as materialized (select set_config('synchronous_commit', 'off', true))
         delete from es.stored_responses o
         using setting, unnest($1::bytea[], $2::uuid[]) as c(key, holder)
         where o.key = c.key and o.holder = c.holder and o.status is null and o.intent is null`,
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
export class StoredResponses implements OnModuleDestroy {
  private readonly log = new Logger('idempotency');
  private readonly stopping = new AbortController();
  /** Claims keys that nobody has used yet. */
  private readonly newClaims = new Batcher<Claim, boolean>(
    2,
    CLAIM_GROUP_SIZE,
    (claims) => this.claimNewKeys(claims),
    { waitMs: START_WITHIN_MS },
  );

  constructor(
    @Inject(Pool) private readonly pool: DatabasePool,
    private readonly masterKeys: MasterKeys,
    private readonly keys: PersonalKeys,
    private readonly session: ProcessSession,
  ) {}

  onModuleDestroy(): void {
    this.stopping.abort();
  }

  /** Returns the hash under which keys and bodies are stored. Neither is stored in plain text. */
  fingerprint(...parts: (string | number)[]): Buffer {
    return fingerprint(this.masterKeys.getDataKey('idempotency keys'), ...parts);
  }

  /**
   * Claims a key for a request, or returns what its first request has come to.
   * @param request fingerprint of the body
   */
  async claimKey(keyed: KeyedRequest, request: Buffer): Promise<IdempotencyKeyState> {
    const { key, holder } = keyed;
    if (await this.newClaims.add({ key, holder, request })) return { state: 'ours' };
    const values = [key, request, holder, LEASE_SECONDS, this.session.leaseHolder];
    const [row] = await this.releaseIfLost([keyed], (until) =>
      query<{
        state: IdempotencyKeyState['state'];
        status: number | null;
        response: Buffer | null;
      }>(this.pool, { ...CLAIM_KEY, values: [...values, until] }),
    );
    if (!row) throw new UnavailableError('The database responds too late');
    if (row.state !== 'done') return { state: row.state };
    if (row.status === null || !row.response) throw new Error('a stored response is complete');
    const stored = this.masterKeys.open(PURPOSE, row.response, getSealContext(key));
    const text = await this.decode(key, stored);
    if (text === undefined) return { state: 'erased' };
    return {
      state: 'done',
      status: row.status,
      body: text === '' ? undefined : (JSON.parse(text) as unknown),
    };
  }

  /**
   * Claims keys until a latest time. If it is not known what became of that, the keys are released: their requests will
   * not use them.
   */
  private async releaseIfLost<R>(claims: Holding[], claim: (until: Date) => Promise<R>) {
    const startedAt = performance.now();
    try {
      return await claim(new Date(getNowMs() + CLAIM_WITHIN_MS));
    } catch (error) {
      const wasSent = !isFailureToConnect(error instanceof UnavailableError ? error.cause : error);
      // Until the latest time the server may still execute it.
      if (wasSent && isDatabaseUnavailable(error))
        this.startReleasing(claims, startedAt + CLAIM_WITHIN_MS);
      throw error;
    }
  }

  /** Claims keys, those in use excepted. Returns whether each was claimed. */
  private async claimNewKeys(claims: Claim[]): Promise<PromiseSettledResult<boolean>[]> {
    const values = [
      claims.map(({ key }) => key),
      claims.map(({ request }) => request),
      claims.map(({ holder }) => holder),
      LEASE_SECONDS,
      this.session.leaseHolder,
    ];
    const rows = await this.releaseIfLost(claims, (until) =>
      awaitQuery(
        queryForGroup<{ holder: string }>(this.pool, {
          ...CLAIM_NEW_KEYS,
          values: [...values, until],
        }),
      ),
    );
    const holders = new Set(rows.map(({ holder }) => holder));
    return claims.map(({ holder }) => ({ status: 'fulfilled', value: holders.has(holder) }));
  }

  /**
   * Seals a response for the commit that it reports. A success that is about people is sealed with the key of each of
   * them first; a rejection holds no personal data. When one of them was erased before, there is no sealed text.
   * @param options.heldKeys keys by person, with which it is sealed at once; else they are loaded
   */
  seal(
    keyed: KeyedRequest,
    stream: string,
    body: unknown,
    options: { heldKeys?: Map<number, PersonalKey> | undefined; queryKeys?: KeyQuery } = {},
  ): Awaitable<SealedResponse> {
    const { status, storedOnlyFields, subjectId } = keyed;
    const stored = storedOnlyFields ? { ...(body as object), ...storedOnlyFields } : body;
    const text = stored === undefined ? '' : JSON.stringify(stored);
    const { subjectIds = subjectId === undefined ? [] : [subjectId] } = keyed;
    const ids = text === '' || status >= 400 ? [] : subjectIds;
    const { heldKeys = NO_KEYS, queryKeys } = options;
    return ids.every((id) => heldKeys.has(id))
      ? this.sealWith(keyed, stream, text, ids, (id) => heldKeys.get(id)?.current)
      : this.keys
          .load(ids, queryKeys)
          .then((keys) => this.sealWith(keyed, stream, text, ids, (id) => keys.get(id)));
  }

  private sealWith(
    { key, holder, status }: KeyedRequest,
    stream: string,
    text: string,
    ids: readonly number[],
    findKey: (subjectId: number) => Buffer | undefined,
  ): SealedResponse {
    const context = getSealContext(key);
    let encoded = Buffer.from(text);
    for (const id of ids) {
      const head = Buffer.alloc(PERSONAL_BYTES);
      head.writeUInt8(PERSONAL);
      head.writeBigUInt64BE(BigInt(id), 1);
      const personalKey = findKey(id);
      if (!personalKey) {
        encoded = head;
        break;
      }
      encoded = Buffer.concat([head, seal(personalKey, encoded, context)]);
    }
    return { key, holder, stream, status, body: this.masterKeys.seal(PURPOSE, encoded, context) };
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
   * Saves a response without events, in a transaction if one is given.
   * @throws KeyTakenOverError then nothing may be committed
   */
  async save(
    keyed: KeyedRequest,
    { status, body }: StoredResponse,
    transaction?: Queryable,
  ): Promise<void> {
    if (!transaction) this.pool.assertConfirmsCommits();
    // A transaction must not wait for a second connection: all others may be waiting as well.
    const queryKeys: KeyQuery | undefined =
      transaction && ((statement) => query(transaction, statement));
    const response = await this.seal({ ...keyed, status }, '', body, queryKeys && { queryKeys });
    try {
      const statement = { ...SAVE, values: [toResponseArgument([response])] };
      await (transaction ? query(transaction, statement) : this.pool.query(statement));
    } catch (error) {
      throw toCommitError(error);
    }
  }

  /**
   * Releases the key of a request that did nothing: the next request with it counts as the first. What fails is repeated
   * in the background until the lease has run out, because repeated requests get 409 for as long (RETRY-06).
   */
  async release(keyed: Holding): Promise<void> {
    try {
      await this.releaseNow([keyed]);
    } catch (error) {
      this.log.warn(`a key is released later, or expires: ${getErrorMessage(error)}`, {
        idempotency_key: abbreviateKey(keyed.key),
      });
      this.startReleasing([keyed]);
    }
  }

  /** Releases keys in the background: it goes on after the response. */
  private startReleasing(holdings: Holding[], claimableUntil?: number): void {
    void runOutside(() => this.releaseLater(holdings, claimableUntil));
  }

  private async releaseNow(holdings: Holding[]): Promise<void> {
    const values = [holdings.map(({ key }) => key), holdings.map(({ holder }) => holder)];
    await this.pool.query({ ...RELEASE, values });
  }

  /** @param claimableUntil when their claim can be executed at the latest: they are released again after that */
  private async releaseLater(holdings: Holding[], claimableUntil = -Infinity): Promise<void> {
    const { signal } = this.stopping;
    const endsAt = performance.now() + LEASE_SECONDS * 1_000;
    for (let isHeld = true; isHeld && performance.now() < endsAt && !signal.aborted;) {
      await pause(RELEASE_AGAIN_MS, signal);
      const releasedAt = performance.now();
      const isReleased = await this.releaseNow(holdings).then(
        () => true,
        () => false,
      );
      isHeld = !isReleased || releasedAt < claimableUntil;
      if (isReleased && isHeld) await pause(claimableUntil - performance.now(), signal);
    }
  }

  /**
   * Executes a function once for a key, which says everything about its request, and saves the result. While another
   * request holds the key, it waits.
   * @returns undefined when the result was about a person who has been erased since
   * @throws InProgressError when the other request takes too long, or the service stops
   */
  async executeKeyed<R>(
    keyed: KeyedRequest,
    execute: () => Promise<R>,
  ): Promise<{ body: R } | undefined> {
    const { signal } = this.stopping;
    const claimed = await retryUntil(
      { withinMs: MAX_WAIT_MS, delayMs: POLL_INTERVAL_MS, signal },
      async () => {
        const state = await this.claimKey(keyed, keyed.key);
        return state.state === 'running' ? RETRY : state;
      },
      () => new InProgressError(),
    );
    if (claimed.state === 'done') return { body: claimed.body as R };
    if (claimed.state === 'erased') return undefined;
    if (claimed.state === 'other') throw new Error('the key is of another request');
    try {
      const body = await execute();
      if (!keyed.isStored) await this.save(keyed, { status: keyed.status, body });
      return { body };
    } catch (error) {
      if (!keyed.isStored) await this.release(keyed);
      throw error;
    }
  }

  /** Deletes expired responses. @returns whether there may be more */
  async prune(): Promise<boolean> {
    const { rowCount } = await this.pool.query(PRUNE);
    return rowCount === PRUNE_BATCH_SIZE;
  }
}

/** Renders the beginning of a key's HMAC, enough to find the log lines of all attempts. */
export const abbreviateKey = (key: Buffer): string => key.toString('hex').slice(0, 16);

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

function getSealContext(key: Buffer): string {
  return `response ${key.toString('hex')}`;
}
