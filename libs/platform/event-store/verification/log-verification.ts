import { parseStreamName } from '#platform/kernel/aggregate.js';
import type { StoredEvent } from '../port/event-store.js';
import type { PersonalKeys } from '../personal-keys/personal-keys.js';
import { openPage } from '../read-models/fold-stream.js';
import type { AnyReadModel } from '../read-models/read-models.js';
import { isMissing, isOutdated, type RecordReplay } from './record-replay.js';
import type { Scope, Slice, Verification } from './verification.js';

/** Replays in progress, some KiB each. */
const MAX_OPEN_REPLAYS = 20_000;

/** The read models that a page of the log completed and that are right. @property slices their rows */
export type VerifiedPage = { streams: number; events: number; outdated: number; slices: Slice[] };

/**
 * Verifies read models while the log is read from its beginning: each up to the revision that its row has when its stream
 * begins. Leaves to a `Verification` what is not right, and what would take too much memory, since other streams go on
 * in between.
 */
export class LogVerification {
  /** By stream, the least recently used first. */
  private readonly openReplays = new Map<string, RecordReplay>();
  private readonly readModels: Map<string, AnyReadModel>;

  constructor(
    private readonly verification: Verification,
    private readonly keys: PersonalKeys,
    allReadModels: AnyReadModel[],
    private readonly scope: Scope,
    private readonly maxOpenReplays = MAX_OPEN_REPLAYS,
  ) {
    this.readModels = new Map(allReadModels.map((candidate) => [candidate.name, candidate]));
  }

  /** Verifies the next page of the log. May be repeated when it fails. */
  async add(events: StoredEvent[]): Promise<VerifiedPage> {
    for (const [readModel, ids] of this.listNewStreams(events)) {
      const replays = await this.verification.readRecords(readModel, ids);
      for (const [stream, record] of replays)
        if (!isMissing(record.row)) this.openReplays.set(stream, record);
    }
    const own = events.filter(({ stream }) => this.openReplays.has(stream));
    const page: VerifiedPage = { streams: 0, events: 0, outdated: 0, slices: [] };
    const verifiedIds = new Map<string, number[]>();
    for (const event of await openPage(this.keys, own)) {
      const { stream, revision } = event.stored;
      const record = this.openReplays.get(stream);
      if (!record) continue;
      this.openReplays.delete(stream);
      if (this.verification.apply(event, record) !== undefined) continue;
      const { row, replay } = record;
      if (revision < row.revision) {
        this.openReplays.set(stream, record);
      } else if (this.verification.isRight(record, this.scope)) {
        page.streams++;
        page.events += row.revision + 1;
        if (isOutdated(record)) page.outdated++;
        addTo(verifiedIds, replay.readModel.table, row.id);
      }
    }
    for (const stream of this.openReplays.keys()) {
      if (this.openReplays.size <= this.maxOpenReplays) break;
      this.openReplays.delete(stream);
    }
    page.slices = [...verifiedIds].map(([table, ids]) => ({ table, ids }));
    return page;
  }

  private listNewStreams(events: StoredEvent[]): Map<AnyReadModel, number[]> {
    const ids = new Map<AnyReadModel, number[]>();
    for (const { stream, revision } of events) {
      const { aggregate, id } = parseStreamName(stream);
      const readModel = this.readModels.get(aggregate);
      if (revision === 0 && readModel && Number.isSafeInteger(id)) addTo(ids, readModel, id);
    }
    return ids;
  }
}

function addTo<K>(lists: Map<K, number[]>, key: K, value: number): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}
