import { Injectable } from '@nestjs/common';
import { WindowCounts, type CountSubject } from '#platform/database/window-counts.js';
import {
  AuditedWrites,
  type AuditedTransaction,
  type AuditedWriter,
} from './audited-writes.service.js';

type Audit = (transaction: AuditedTransaction, times: number) => Promise<void>;

/**
 * Writes audit entries about what can be repeated at will, such as a wrong password. Nothing is ever removed from the
 * audit log, so within an hour only the 1st, 10th, 100th … of the same kind gets an entry.
 */
@Injectable()
export class RepeatedAudits {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly counts: WindowCounts,
  ) {}

  /**
   * Counts an occurrence, and writes an entry if it is the 1st, 10th, 100th …
   * @param kind what two occurrences have in common; stored as an HMAC
   * @param audit writes the entry, with the number of occurrences
   */
  write(by: AuditedWriter, kind: CountSubject, audit: Audit): Promise<void> {
    return this.writes.write(by, (transaction) => this.writeWithin(transaction, kind, audit));
  }

  /** Does the same within a transaction. */
  async writeWithin(
    transaction: AuditedTransaction,
    kind: CountSubject,
    audit: Audit,
  ): Promise<void> {
    const times = await this.count(transaction, kind);
    if (isWritten(times)) await audit(transaction, times);
  }

  /**
   * Counts one more occurrence, without an entry.
   * @returns the number of occurrences within the hour
   */
  async count(transaction: AuditedTransaction, kind: CountSubject): Promise<number> {
    const { count } = await this.counts.add(transaction.manager, ['audit', ...kind], '1 hour');
    return count;
  }
}

/** Tells whether a number of occurrences gets an entry: the 1st, 10th, 100th … */
export function isWritten(times: number): boolean {
  return /^10*$/.test(String(times));
}
