import { UnavailableError } from '#platform/kernel/errors.js';
import { Batcher, BatchSlots, type BatchLimits } from '#platform/database/batcher.js';
import {
  isConnectionLoss,
  isDatabaseUnavailable,
  queryForGroup,
} from '#platform/database/connection.js';
import type { DatabasePool } from '#platform/database/database-pool.js';
import { toReadModelArguments, type ClaimRow } from '../postgres/commit-arguments.js';
import { START_WITHIN_MS } from '../commands/lane.js';
import {
  closeIntent,
  findLateClaims,
  getReadModelUpdates,
  needsTransaction,
  type Intent,
} from './intents.js';

/** As for commits in PostgreSQL: opening an intent waits for the disk as well. */
const OPENING: BatchLimits = { alwaysRun: 4, maxRunning: 4, waitMs: START_WITHIN_MS };
const GROUP_SIZE = 64;
const getStuckMs = (size: number) => 2 + size / 10;

const OPEN = { name: 'es_open_intents', text: 'select es.open_intents($1, $2, $3, $4)' };
/** Does not wait for the disk: an intent whose end PostgreSQL loses in a crash is finished again. */
const CLOSE = {
  name: 'es_close_intents',
  text: `select set_config('synchronous_commit', 'off', true), es.close_intents($1, $2, $3, $4)`,
};

/**
 * Opens and closes intents in groups, each with one statement. A group is all or nothing; after an error each of its
 * intents is opened or closed alone.
 */
export class IntentGroups {
  private readonly opening: Batcher<Intent, void>;
  private readonly closing: Batcher<Intent, void>;

  /**
   * @param readModelSlots shared with other writers of read models
   * @param getLeaseHolder the number of this process
   * @param openAlone opens one intent; `isUnknown` if an earlier try may have opened it
   */
  constructor(
    private readonly pool: DatabasePool,
    readModelSlots: BatchSlots,
    private readonly getLeaseHolder: () => number | null,
    private readonly openAlone: (intent: Intent, isUnknown: boolean) => Promise<void>,
  ) {
    this.opening = new Batcher(
      new BatchSlots(1, getStuckMs),
      GROUP_SIZE,
      (group) => this.openGroup(group),
      OPENING,
    );
    this.closing = new Batcher(readModelSlots, GROUP_SIZE, (group) => this.closeGroup(group));
  }

  /**
   * Opens a sealed intent.
   * @throws ClaimTakenError, KeyTakenOverError, CapReachedError, UnavailableError: there is no intent
   * @throws UnknownOutcomeError
   */
  open(intent: Intent): Promise<void> {
    return needsTransaction(intent) ? this.openAlone(intent, false) : this.opening.add(intent);
  }

  /** Closes an intent whose events are all appended. */
  close(intent: Intent): Promise<void> {
    const { writes, erasures, sideEffects } = intent.content;
    // The first write is appended as planned, or not at all.
    const isLate = writes.length > 1 && findLateClaims(intent.content).length > 0;
    const isClosedAlone = erasures ?? sideEffects ?? isLate;
    return isClosedAlone ? closeIntent(this.pool, intent) : this.closing.add(intent);
  }

  private async openGroup(intents: Intent[]): Promise<PromiseSettledResult<void>[]> {
    let isUnknown = false;
    if (!haveClaimInCommon(intents)) {
      try {
        this.pool.assertConfirmsCommits();
        const values = [
          intents.map(({ id }) => id),
          intents.map(({ holder }) => holder),
          intents.map(({ content }) => JSON.stringify(content)),
          this.getLeaseHolder(),
        ];
        await queryForGroup(this.pool, { ...OPEN, values });
        return intents.map(() => ({ status: 'fulfilled', value: undefined }));
      } catch (error) {
        // Nothing was sent. Retrying each alone would add up their waiting times.
        if (error instanceof UnavailableError) throw error;
        isUnknown = isConnectionLoss(error);
      }
    }
    return Promise.allSettled(intents.map((intent) => this.openAlone(intent, isUnknown)));
  }

  private async closeGroup(intents: Intent[]): Promise<PromiseSettledResult<void>[]> {
    const [result] = await Promise.allSettled([this.closeTogether(intents)]);
    if (result.status === 'fulfilled' || isDatabaseUnavailable(result.reason)) {
      return intents.map(() => result);
    }
    const results: PromiseSettledResult<void>[] = [];
    for (const intent of intents) {
      results.push(...(await Promise.allSettled([closeIntent(this.pool, intent)])));
    }
    return results;
  }

  private async closeTogether(intents: Intent[]): Promise<void> {
    const updates = intents
      .flatMap(({ content }) => getReadModelUpdates(content))
      .sort((a, b) => (a.stream < b.stream ? -1 : 1));
    const values = [
      intents.map(({ id }) => id),
      ...toReadModelArguments(updates),
      updates.map(({ stream }) => stream),
    ];
    await queryForGroup(this.pool, { ...CLOSE, values });
  }
}

/** Tells whether two intents have the same claim: one statement cannot say which of them gets it. */
function haveClaimInCommon(intents: Intent[]): boolean {
  const claims = intents.flatMap(({ content }) =>
    (JSON.parse(content.claims ?? '[]') as ClaimRow[]).map(({ a, k, v }) => `${a} ${k} ${v}`),
  );
  return new Set(claims).size < claims.length;
}
