import { Logger } from '@nestjs/common';
import type { Pool } from 'pg';
import {
  DamagedHistoryError,
  getErrorMessage,
  getMessageWithCause,
} from '#platform/kernel/errors.js';
import type { RemainingWrites } from './remaining-writes.js';
import type { PersonalKeys } from '../personal-keys/personal-keys.js';
import { ConflictError, type Write } from '../port/event-store.js';
import type { EventStoreDbAppender } from './eventstoredb-appender.js';
import type { EventStoreDbReader } from './eventstoredb-reader.js';
import {
  abandonIntent,
  setDamaged,
  takeOverIntents,
  unsealIntent,
  type Intent,
} from './intents.js';
import { RareWarnings } from './rare-warnings.js';
import { isAppended } from './stream-heads.js';

/** Finishes the intents of processes that died. */
export class IntentRecovery {
  private readonly log = new Logger('intents');
  private readonly rareWarnings = new RareWarnings(this.log);

  /** @param close closes an intent whose writes are appended */
  constructor(
    private readonly pool: Pool,
    private readonly keys: PersonalKeys,
    private readonly reader: EventStoreDbReader,
    private readonly appender: EventStoreDbAppender,
    private readonly remainingWrites: RemainingWrites,
    private readonly close: (intent: Intent, appended: Write[]) => Promise<void>,
  ) {}

  /** Takes over what processes that died have left, and finishes it as this process. */
  async run(leaseHolder: number | null): Promise<void> {
    try {
      for (const stored of await takeOverIntents(this.pool, 20, leaseHolder))
        await this.tryFinish(stored);
    } catch (error) {
      this.rareWarnings.warn(
        'intents could not be checked, trying again later',
        getErrorMessage(error),
      );
    }
  }

  /**
   * Finishes an intent, or leaves it for later: one that cannot be finished now must not block the others. It is found
   * again when its lease expires: after a day, if that takes a repair.
   */
  private async tryFinish(stored: Intent): Promise<void> {
    try {
      await this.finish(await unsealIntent(this.keys, stored));
    } catch (error) {
      const isDamaged = error instanceof DamagedHistoryError;
      if (isDamaged) await setDamaged(this.pool, stored, error);
      this.log.warn(
        `intent ${stored.id} could not be finished, trying again ${isDamaged ? 'tomorrow' : 'later'}: ${getMessageWithCause(error)}`,
      );
    }
  }

  /**
   * Finishes the intent of a dead process: appends it identically and closes it, or abandons one that lost
   * its race.
   */
  private async finish(intent: Intent): Promise<void> {
    const [first, ...rest] = intent.content.writes;
    if (!first) throw new Error('a commit writes something');
    try {
      await this.appender.append(first);
    } catch (error) {
      if (!(error instanceof ConflictError || error instanceof DamagedHistoryError)) throw error;
      // Somebody may have damaged the stream after the process that died had appended to it.
      if (error instanceof DamagedHistoryError && (await isAppended(this.reader, first)))
        throw error;
      if ((await abandonIntent(this.pool, intent)) === 'abandoned') {
        this.log.log(`intent ${intent.id} of a process that died came too late and was abandoned`);
      }
      return;
    }
    await this.close(intent, await this.remainingWrites.append(first, rest));
    this.log.log(`intent ${intent.id} of a process that died was finished`);
  }
}
