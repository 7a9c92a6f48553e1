import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import type { Actor, Channel, KeyedRequest, RequestSource } from '#platform/kernel/aggregate.js';
import { UnavailableError } from '#platform/kernel/errors.js';
import { AuditEntryRow } from '#platform/database/audit-log.entity.js';
import { isConnectionLoss, isOutage, runInside } from '#platform/database/connection.js';
import { getPool } from '#platform/database/data-source.js';
import {
  isUnknownAfterLoss,
  retryWhileUnknown,
  type IsUnknownAfter,
} from '#platform/database/retry-while-unknown.js';
import { StoredResponses } from './stored-responses.js';

/** How long a write retries after its connection broke: the next try gets another connection. */
const RETRY_FOR_MS = 1_000;

/** Reports that there was no connection before the commit was sent, so nothing was written. */
class NotCommittedError extends UnavailableError {}

/** The author of a change of plain records, those without a history. */
export type AuditedWriter = RequestSource & {
  actor: Actor;
  channel: Channel;
  keyed?: KeyedRequest;
  /**
   * Renders the response in the transaction of the write, where it differs from the result of the work. It is what is
   * stored under an Idempotency-Key.
   */
  respond?: (result: unknown, manager: EntityManager) => Promise<unknown>;
};

export type NewAuditEntry = {
  /** The accounts that the change is about, possibly none; each gets the entry. */
  accountIds: readonly number[];
  /** `<record>.<past tense>`, such as `token.revoked`. */
  type: string;
  /** Ids and the changes (`findChanges`), never a secret. */
  subject: object;
  /** The actor when this change itself creates them; otherwise it is the writer. */
  actor?: Actor;
};

/**
 * Writes plain records, as the command pipeline writes records with a history: in one transaction with the audit entry
 * and, for a request with an Idempotency-Key, its stored response. Nothing else changes plain records.
 */
@Injectable()
export class AuditedWrites {
  constructor(
    private readonly source: DataSource,
    private readonly responses: StoredResponses,
  ) {}

  /**
   * Runs the work in a transaction, and repeats it when the connection is lost, because it may have been committed. All
   * work is idempotent.
   * @param work learns from `isRepeated` whether it may have been done before; `audit` writes into the same transaction
   * @throws UnknownOutcomeError when the database stays unavailable
   */
  async write<R>(
    by: AuditedWriter,
    work: (transaction: AuditedTransaction) => Promise<R>,
  ): Promise<R> {
    let tries = 0;
    const attempt = async () => {
      const isRepeated = tries++ > 0;
      const result = await this.transaction(async (manager) => {
        const result = await work(new AuditedTransaction(manager, by, isRepeated));
        const body = by.respond ? await by.respond(result, manager) : result;
        if (by.keyed) {
          const response = { status: by.keyed.status, body };
          await this.responses.save(by.keyed, response, manager);
        }
        return result;
      });
      if (by.keyed) by.keyed.isStored = true;
      return result;
    };
    const isUnknownAfter: IsUnknownAfter = (error, wasUnknown, elapsedMs) => {
      const isNotWritten = !wasUnknown && error instanceof NotCommittedError;
      if (isNotWritten && elapsedMs < RETRY_FOR_MS) return false;
      return isUnknownAfterLoss(error, wasUnknown, elapsedMs);
    };
    return retryWhileUnknown(attempt, { isUnknownAfter });
  }

  /**
   * Runs the work in a transaction.
   * @throws NotCommittedError when there is no connection before the commit is sent: nothing was written
   */
  private async transaction<R>(work: (manager: EntityManager) => Promise<R>): Promise<R> {
    getPool(this.source).assertConfirmsCommits();
    const runner = this.source.createQueryRunner();
    let isCommitting = false;
    try {
      return await runner.manager.transaction(async (manager) => {
        const result = await runInside(getPool(this.source), () => work(manager));
        isCommitting = true;
        return result;
      });
    } catch (error) {
      const cause = error instanceof UnavailableError ? error.cause : error;
      if (!isCommitting && isConnectionLoss(cause)) {
        throw new NotCommittedError('The database cannot be reached', { cause });
      }
      // Rejects when the server has ended the connection as well, perhaps in the middle of the commit.
      if (isOutage(error)) await runner.query('select 1');
      throw error;
    } finally {
      await runner.release();
    }
  }
}

export class AuditedTransaction {
  constructor(
    readonly manager: EntityManager,
    private readonly by: AuditedWriter,
    /** An earlier try may have committed the same work. */
    readonly isRepeated: boolean,
  ) {}

  async audit({ accountIds, type, subject, actor = this.by.actor }: NewAuditEntry): Promise<void> {
    const entries = (accountIds.length === 0 ? [null] : accountIds).map((accountId) => ({
      account_id: accountId,
      type,
      actor,
      channel: this.by.channel,
      request_id: this.by.requestId,
      ip_address: this.by.ipAddress ?? null,
      subject,
      recorded_at: () => 'now()',
    }));
    await this.manager.insert(AuditEntryRow, entries);
  }
}
