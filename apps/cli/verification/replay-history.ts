import { readLog } from '#platform/event-store/log/read-log.js';
import { EventTypes } from '#platform/event-store/port/event-types.js';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import { HistoryReplay, type HistoryDifference } from '#loyalty/history/history-replay.service.js';
import { LeafOrder } from '#outbound/transparency/leaf-order.js';
import { Tree } from '#outbound/transparency/tree.service.js';
import { readModels } from '../../read-models.js';
import { retryLostConnections } from '../lost-connections.js';
import type { VerificationServices } from './verification-services.js';

const PAGE = 5_000;
/**
 * Limits the repairs, of which the last finds nothing. Entries that are added meanwhile inherit from those before them,
 * which may not be repaired yet.
 */
const MAX_REPAIRS = 4;

export type ReplayedHistory = {
  count: number;
  differences: HistoryDifference[];
  isRepaired: boolean;
};

type Services = Pick<VerificationServices, 'pool' | 'store'>;

/** Compares the table of the history with the log, of which it gets each page. */
export class HistoryPass {
  private constructor(
    private readonly services: Services,
    private readonly replay: HistoryReplay,
    private readonly order: LeafOrder,
  ) {}

  static begin(services: Services, isRepair = false): Promise<HistoryPass> {
    const { pool, store } = services;
    const types = new EventTypes(readModels);
    return retryLostConnections(async () => {
      const { edge } = await new Tree(pool).read();
      const replay = await HistoryReplay.begin(pool, store, types, { isRepair });
      return new HistoryPass(services, replay, new LeafOrder(edge));
    });
  }

  async add(page: StoredEvent[]): Promise<number> {
    const count = await retryLostConnections(() => this.replay.add(page));
    this.order.add(page);
    return count;
  }

  /** Reads and compares the whole log. */
  async addAll(onEvents: (count: number) => void): Promise<void> {
    for await (const page of readLog(this.services.store, PAGE, retryLostConnections))
      onEvents(await this.add(page));
  }

  /** Ends the comparison, and repairs the table unless proofs cite another log than this. */
  async end(shouldRepair: boolean): Promise<ReplayedHistory> {
    const { replay } = this;
    await this.finish();
    const { count, differences, isRepairable } = replay;
    const isRepaired =
      shouldRepair && isRepairable && differences.length > 0 && (await this.repair());
    return { count, differences, isRepaired };
  }

  private async finish(): Promise<void> {
    const error = this.order.findError();
    if (error !== undefined) this.replay.keepTable(error);
    await retryLostConnections(() => this.replay.finish());
  }

  /** Replays the log again and again until the table matches it. @returns whether it does */
  private async repair(): Promise<boolean> {
    for (let repairs = 0; repairs < MAX_REPAIRS; repairs++) {
      const pass = await HistoryPass.begin(this.services, true);
      await pass.addAll(() => undefined);
      await pass.finish();
      this.replay.differences.push(...pass.replay.differences);
      if (!pass.replay.isRepairable) return false;
      if (!pass.replay.hasReplaced) return true;
    }
    return false;
  }
}
