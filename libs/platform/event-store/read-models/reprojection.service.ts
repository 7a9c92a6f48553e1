import { Inject, Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { Gauge, Registry } from 'prom-client';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { pause } from '#platform/kernel/pause.js';
import { toReadModelArguments, type ReadModelUpdate } from '../postgres/commit-arguments.js';
import { EventStore } from '../port/event-store.js';
import { PersonalKeys } from '../personal-keys/personal-keys.js';
import { openPage } from './fold-stream.js';
import { ALL_READ_MODELS, toStreamName, type AnyReadModel } from './read-models.js';
import { applyEvent, createReplay, toReadModelUpdate } from '../verification/stream-replay.js';

const BATCH = 100;
/** Pause between two batches, so that the work of commands comes first. */
const PAUSE_MS = 200;
/**
 * Interval of the rounds: processes of the version before write read models of the older projection until they have
 * ended.
 */
const RETRY_MS = 10 * 60_000;
/** Maximum number of read models that fail in a round; until then they are skipped. */
const MAX_FAILED = 1_000;

type OutdatedRow = { id: number; revision: number };

/**
 * Reprojects read models that an older projection version made. Commands do that for the ones that they load, but lists
 * and searches read them as they are. Several processes may do it at once: read models only ever move forward.
 */
@Injectable()
export class Reprojection {
  private readonly log = new Logger('reprojection');
  private readonly remaining: Gauge<'table'>;

  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
    private readonly keys: PersonalKeys,
    @Inject(ALL_READ_MODELS) private readonly allReadModels: AnyReadModel[],
    registry: Registry,
  ) {
    this.remaining = new Gauge({
      name: 'inkpad_read_models_outdated',
      help: 'Read models of an older projection version that are still to be projected again, by table',
      labelNames: ['table'],
      registers: [registry],
    });
  }

  /** Runs until the signal aborts: checks each table at the start and every ten minutes. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      for (const readModel of this.allReadModels) {
        try {
          await this.reproject(readModel, signal);
        } catch (error) {
          this.log.warn(`${readModel.table} is projected again later: ${getErrorMessage(error)}`);
        }
      }
      await pause(RETRY_MS, signal);
    }
  }

  private async reproject(readModel: AnyReadModel, signal: AbortSignal): Promise<void> {
    const { table } = readModel;
    const total = await this.countOutdated(readModel);
    this.remaining.set({ table }, total);
    if (total === 0) return;
    const failedIds = new Set<number>();
    for (let doneCount = 0; !signal.aborted && failedIds.size < MAX_FAILED;) {
      const outdated = await this.findOutdated(readModel, [...failedIds]);
      if (outdated.length === 0) break;
      const updates = await this.projectAll(readModel, outdated, failedIds);
      await this.write(updates);
      doneCount += outdated.length;
      this.remaining.set({ table }, Math.max(failedIds.size, total - doneCount));
      await pause(PAUSE_MS, signal);
    }
    this.remaining.set({ table }, await this.countOutdated(readModel));
    if (!signal.aborted)
      this.log.log(`${total - failedIds.size} rows of ${table} were projected again`);
  }

  private async countOutdated({ table, projectionVersion }: AnyReadModel): Promise<number> {
    const { rows } = await this.pool.query<{ n: number }>({
      name: `reprojection_count_${table}`,
      text: `select count(*) as n from ${table} where projection_version < $1`,
      values: [projectionVersion],
    });
    return rows[0]?.n ?? 0;
  }

  private async findOutdated(
    { table, projectionVersion }: AnyReadModel,
    failedIds: number[],
  ): Promise<OutdatedRow[]> {
    const { rows } = await this.pool.query<OutdatedRow>({
      name: `reprojection_next_${table}`,
      text: `select id, revision from ${table}
             where projection_version < $1 and id <> all ($2::bigint[]) limit ${BATCH}`,
      values: [projectionVersion, failedIds],
    });
    return rows;
  }

  /** Projects a read model up to its own revision. A command of this version that moves it on reprojects it as well. */
  private async projectAll(
    readModel: AnyReadModel,
    outdated: OutdatedRow[],
    failedIds: Set<number>,
  ): Promise<ReadModelUpdate[]> {
    const replays = new Map(
      outdated.map(({ id }) => {
        const stream = toStreamName(readModel, id);
        return [stream, createReplay(readModel, stream, id)];
      }),
    );
    const ranges = outdated.map(({ id, revision }) => ({
      stream: toStreamName(readModel, id),
      to: revision,
    }));
    for await (const batch of this.eventStore.readStreams(ranges)) {
      for (const event of await openPage(this.keys, batch)) {
        const replay = replays.get(event.stored.stream);
        if (!replay || failedIds.has(replay.id)) continue;
        const problem = catchMessage(() => applyEvent(replay, event, this.keys));
        if (problem !== undefined) this.reportFailure(readModel, replay.id, failedIds, problem);
      }
    }
    return outdated.flatMap(({ id, revision }) => {
      const replay = replays.get(toStreamName(readModel, id));
      if (!replay || failedIds.has(id)) return [];
      const update = toReadModelUpdate(replay);
      if (update?.head.revision === revision) return [update];
      this.reportFailure(readModel, id, failedIds, 'the read model is ahead of its stream');
      return [];
    });
  }

  private reportFailure(
    { table }: AnyReadModel,
    id: number,
    failedIds: Set<number>,
    reason: string,
  ): void {
    failedIds.add(id);
    this.log.error(`${table} ${id} stays as an older projection made it: ${reason}`);
  }

  private async write(updates: ReadModelUpdate[]): Promise<void> {
    if (updates.length === 0) return;
    const sorted = updates.toSorted((a, b) => a.row.id - b.row.id);
    await this.pool.query({
      name: 'es_write_read_models',
      text: 'select es.write_read_models($1, $2, $3)',
      values: [...toReadModelArguments(sorted), sorted.map(({ stream }) => stream)],
    });
  }
}

function catchMessage(work: () => void): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    return getErrorMessage(error);
  }
}
