import { Injectable } from '@nestjs/common';
import { fingerprint } from '#kernel/sealing.js';
import { countWithin } from '#database/expiring-count.js';
import { MasterKeys } from '#database/master-keys.js';
import { PlainWrites, type PlainTransaction, type PlainWriter } from './plain-writes.service.js';

const COUNT = countWithin('audit_repetitions', 'times', '1 hour');

type Kind = readonly (string | number)[];
type Audit = (transaction: PlainTransaction, times: number) => Promise<void>;

/**
 * Audit entries about what can be repeated at will, such as a wrong password. Nothing is ever removed from the audit log, so
 * within an hour only the 1st, 10th, 100th … of the same kind is an entry.
 */
@Injectable()
export class RepeatedAudits {
  constructor(
    private readonly writes: PlainWrites,
    private readonly keys: MasterKeys,
  ) {}

  /**
   * @param kind what two of them have in common; stored as an HMAC
   * @param audit writes the entry, which says how often it has been
   */
  write(by: PlainWriter, kind: Kind, audit: Audit): Promise<void> {
    return this.writes.write(by, (transaction) => this.writeWithin(transaction, kind, audit));
  }

  /** The same within a transaction. */
  async writeWithin(transaction: PlainTransaction, kind: Kind, audit: Audit): Promise<void> {
    const key = fingerprint(this.keys.dataKey('audit repetitions'), ...kind);
    const [row]: { times: number }[] = await transaction.manager.query(COUNT, [key]);
    const { times = 0 } = row ?? {};
    if (/^10*$/.test(String(times))) await audit(transaction, times);
  }
}
