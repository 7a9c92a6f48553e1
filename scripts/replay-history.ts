import { readLog } from '#event-store/log/read-log.js';
import { EventTypes } from '#event-store/port/event-types.js';
import type { StoredEvent } from '#event-store/port/event-store.js';
import { HistoryReplay, type HistoryDifference } from '#history/history-replay.service.js';
import { LeafOrder } from '#transparency/leaf-order.js';
import { Tree } from '#transparency/tree.service.js';
import { readModels } from '../apps/read-models.js';
import { retryLostConnections } from './lost-connections.js';
import type { VerificationServices } from './verification-services.js';

const PAGE = 5_000;
/** Entries that are added during a repair inherit from those before them, which may not be repaired yet. */
const MAX_REPAIRS = 3;

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

  static begin(services: Services): Promise<HistoryPass> {
    const { pool, store } = services;
    const types = new EventTypes(readModels.map(({ aggregate }) => aggregate));
    return retryLostConnections(async () => {
      const { edge } = await new Tree(pool).read();
      const replay = await HistoryReplay.begin(pool, store, types);
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
  async end(shouldRepair: boolean, repairs = 1): Promise<ReplayedHistory> {
    const { replay, services } = this;
    await retryLostConnections(() => replay.finish());
    const error = this.order.findError();
    if (error !== undefined) replay.keep(error);
    const isRepaired = shouldRepair && (await replay.repair());
    if (isRepaired && repairs < MAX_REPAIRS) {
      const again = await HistoryPass.begin(services);
      await again.addAll(() => undefined);
      await again.end(true, repairs + 1);
    }
    return { count: replay.count, differences: replay.differences, isRepaired };
  }
}
