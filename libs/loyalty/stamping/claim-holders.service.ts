import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { DomainEvent } from '#platform/kernel/aggregate.js';
import { query } from '#platform/database/connection.js';
import type { Claim } from '#platform/event-store/port/event-store.js';
import { ReadModels, type ReadModel } from '#platform/event-store/read-models/read-models.js';

/** Finds the record that holds a claim. */
@Injectable()
export class ClaimHolders {
  constructor(
    private readonly pool: Pool,
    private readonly readModels: ReadModels,
  ) {}

  /**
   * Finds the record that holds the first of these claims that another one holds: of a merged one, the one that goes
   * on.
   * @param mergedInto the id of the one that goes on
   * @returns undefined when it has been given up since
   */
  async find<S extends { accountId: number }, E extends DomainEvent>(
    accountId: number,
    claims: Claim[],
    { rows, mergedInto }: { rows: ReadModel<S, E>; mergedInto: (state: S) => number | undefined },
  ): Promise<number | undefined> {
    const [claim] = await query<{ stream_id: string }>(this.pool, {
      name: 'claim_holders_find',
      text: `select c.stream_id
             from unnest($2::text[], $3::bytea[], $4::text[]) with ordinality as x (kind, value, stream, place)
             join es.claims c on c.account_id = $1 and c.kind = x.kind and c.value = x.value
             where c.stream_id <> x.stream order by x.place limit 1`,
      values: [
        accountId,
        claims.map(({ kind }) => kind),
        claims.map(({ value }) => value),
        claims.map(({ stream }) => stream),
      ],
    });
    const prefix = `${rows.name}-`;
    if (!claim?.stream_id.startsWith(prefix)) return undefined;
    return this.findSurvivor(rows, Number(claim.stream_id.slice(prefix.length)), mergedInto);
  }

  /** Lists the records that hold any of these claims, each with the places of its claims in the list. */
  async list(
    accountId: number,
    claims: Claim[],
    { name }: { name: string },
  ): Promise<{ id: number; places: number[] }[]> {
    const rows = await query<{ stream_id: string; places: number[] }>(this.pool, {
      name: 'claim_holders_list',
      text: `select c.stream_id, array_agg(x.place::int - 1 order by x.place) as places
             from unnest($2::text[], $3::bytea[]) with ordinality as x (kind, value, place)
             join es.claims c on c.account_id = $1 and c.kind = x.kind and c.value = x.value
             group by c.stream_id order by min(x.place)`,
      values: [accountId, claims.map(({ kind }) => kind), claims.map(({ value }) => value)],
    });
    return rows
      .filter(({ stream_id: stream }) => stream.startsWith(`${name}-`))
      .map(({ stream_id: stream, places }) => ({
        id: Number(stream.slice(name.length + 1)),
        places,
      }));
  }

  /** Finds the record into which others were merged in turn. Undoing a merge meanwhile may lead in a circle. */
  async findSurvivor<S extends { accountId: number }, E extends DomainEvent>(
    rows: ReadModel<S, E>,
    id: number,
    mergedInto: (state: S) => number | undefined,
  ): Promise<number> {
    const visited = new Set<number>();
    for (let at = id; ;) {
      visited.add(at);
      const loaded = await this.readModels.load(rows, at);
      const next = loaded && mergedInto(loaded.state);
      if (next === undefined || visited.has(next)) return at;
      at = next;
    }
  }
}
