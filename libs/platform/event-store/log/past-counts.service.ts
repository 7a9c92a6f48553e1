import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { UnavailableError } from '#platform/kernel/errors.js';
import { query, awaitQuery } from '#platform/database/connection.js';
import type { PointInTime } from './past-states.service.js';
import { readPosition } from '../port/subscription-position.js';
import { BEGINNING, EventStore, type Position, type StoredEvent } from '../port/event-store.js';
import { EventTypes } from '../port/event-types.js';
import { formatPosition, isAfter, parsePosition } from '../port/position.js';

const BATCH = 500;
const MAX_BATCHES = 50;

/** The history's first entry at or after a position, and how far the history goes. */
const PLACE = `
  with place as (
    select find_history_seq($1, null) as seq,
      (select position from es.positions where subscription = 'history') as reached
  )`;

/** Entries of the history that change how many records an owner has. */
export type PastCount = {
  /** Names the statement. */
  name: string;
  /** The column of the history with the owner's id. */
  ownerColumn: string;
  /** The change of the count, by the name of the entry. */
  changes: Readonly<Record<string, 1 | -1>>;
  /** Finds the owners of events that the history does not contain yet, in order. */
  findOwners: (events: StoredEvent[]) => Promise<(number | undefined)[]>;
};

type CountRow = { reached: string | null; owner: number | null; count: number };

/**
 * Counts how many records there were, of kinds with too many records to project each. Reads the history, and the log
 * where the history is behind it.
 */
@Injectable()
export class PastCounts {
  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
    private readonly types: EventTypes,
  ) {}

  /**
   * Reads the events up to a moment that the history does not contain yet.
   * @throws UnavailableError
   */
  async readBeyondHistory({ position }: PointInTime): Promise<StoredEvent[]> {
    return awaitQuery(
      readPosition(this.pool, 'history').then((reached) => this.readTail(reached, position)),
    );
  }

  /**
   * Counts records of an account by owner; owners without any are left out.
   * @throws UnavailableError
   */
  async count(
    accountId: number,
    owners: number[],
    { name, ownerColumn, changes, findOwners }: PastCount,
    { position }: PointInTime,
  ): Promise<Map<number, number>> {
    const names = Object.keys(changes);
    const cases = names.map((key) => `when '${key}' then ${changes[key]}`).join(' ');
    const rows = await query<CountRow>(this.pool, {
      name,
      text: `${PLACE}
        select p.reached, h.${ownerColumn} as owner,
          coalesce(sum(case h.name ${cases} end) filter (where h.seq is not null), 0) as count
        from place p
        left join history h on h.account_id = $3 and h.${ownerColumn} = any ($2) and h.seq < p.seq
          and h.name in (${names.map((key) => `'${key}'`).join(', ')})
        group by p.reached, h.${ownerColumn}`,
      values: [formatPosition({ ...position, prepare: position.prepare + 1n }), owners, accountId],
    });
    const counts = new Map<number, number>();
    const addTo = (owner: number, by: number) => counts.set(owner, (counts.get(owner) ?? 0) + by);
    for (const { owner, count } of rows) if (owner !== null) addTo(owner, count);
    const reached = rows[0]?.reached ?? null;
    const from = reached === null ? BEGINNING : parsePosition(reached);
    const getChange = ({ type }: StoredEvent) => changes[this.types.findPublicName(type) ?? ''];
    const lateEvents = (await awaitQuery(this.readTail(from, position))).filter(getChange);
    const lateOwners = await findOwners(lateEvents);
    for (const [i, event] of lateEvents.entries()) addTo(lateOwners[i] ?? 0, getChange(event) ?? 0);
    return counts;
  }

  /** Reads the events that the history does not contain yet. */
  private async readTail(reached: Position, until: Position): Promise<StoredEvent[]> {
    const events: StoredEvent[] = [];
    let after = reached;
    for (let batches = 0; isAfter(until, after); batches++) {
      if (batches === MAX_BATCHES) {
        throw new UnavailableError('The history is still being taken in; try again in a minute');
      }
      const page = await this.eventStore.readAll(after, BATCH);
      const last = page.at(-1);
      if (!last) break;
      events.push(...page.filter((event) => !isAfter(event.position, until)));
      after = last.position;
    }
    return events;
  }
}
