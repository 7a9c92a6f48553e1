import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { RejectedError } from '#kernel/errors.js';
import { postcodeOf, type Postcode } from './postcode-line.js';

const AT_ONCE = 2_000;
const DELETED_AT_ONCE = 10_000;

const INSERT = {
  name: 'gazetteer_add_postcodes',
  text: `
    insert into gazetteer_postcodes (load_id, postcode, country, place, latitude, longitude)
    select $1, * from unnest($2::text[], $3::text[], $4::text[], $5::float4[], $6::float4[])`,
};

/**
 * Each country of the file is replaced as a whole, and only once the file was read to its end. A load that another one
 * has thrown rows away from does not count.
 */
const FINISH = `
  insert into gazetteer_parts (part, load_id, version)
  select 'postcodes:' || country, $1, $3
  from (select distinct country from gazetteer_postcodes where load_id = $1) x
  where (select count(*) from gazetteer_postcodes where load_id = $1) = $2
  on conflict (part) do update
    set load_id = excluded.load_id, version = excluded.version, loaded_at = now()
  returning part`;

const DELETE_REPLACED = `
  delete from gazetteer_postcodes where ctid = any (array(
    select p.ctid from gazetteer_postcodes p
    where p.load_id < $1 and not exists (
      select from gazetteer_parts g where g.load_id = p.load_id and g.part = 'postcodes:' || p.country)
    limit ${DELETED_AT_ONCE}))`;

/** Postcode files of GeoNames, which an operator has downloaded. */
@Injectable()
export class PostcodesImport {
  constructor(private readonly pool: Pool) {}

  /**
   * All or nothing; an interrupted import is simply repeated.
   * @param version what the operator knows the file by
   * @param progress told how many lines were read
   * @throws RejectedError for a line that is none of such a file
   */
  async run(
    lines: AsyncIterable<string>,
    version: string,
    progress: (lines: number) => void,
  ): Promise<{ postcodes: number; countries: string[] }> {
    const { rows } = await this.pool.query<{ id: number }>(
      `select nextval('gazetteer_loads')::int as id`,
    );
    const id = rows[0]?.id ?? 0;
    let read = 0;
    let batch: Postcode[] = [];
    for await (const line of lines) {
      read += 1;
      const postcode = postcodeOf(line);
      if (!postcode) {
        throw new RejectedError({
          base: [`Line ${read} is not one of GeoNames' postcode files; nothing was imported`],
        });
      }
      batch.push(postcode);
      if (batch.length < AT_ONCE) continue;
      await this.add(id, batch);
      batch = [];
      progress(read);
    }
    await this.add(id, batch);
    progress(read);
    const finished = await this.pool.query<{ part: string }>(FINISH, [id, read, version]);
    if (finished.rows.length === 0) {
      throw new RejectedError({
        base: ['The file is empty, or another import ran at the same time: import it again'],
      });
    }
    for (let deleted = DELETED_AT_ONCE; deleted === DELETED_AT_ONCE;) {
      deleted = (await this.pool.query(DELETE_REPLACED, [id])).rowCount ?? 0;
    }
    const countries = finished.rows.map(({ part }) => part.slice('postcodes:'.length)).sort();
    return { postcodes: read, countries };
  }

  private async add(id: number, batch: Postcode[]): Promise<void> {
    await this.pool.query({
      ...INSERT,
      values: [
        id,
        batch.map(({ postcode }) => postcode),
        batch.map(({ country }) => country),
        batch.map(({ place }) => place),
        batch.map(({ latitude }) => latitude),
        batch.map(({ longitude }) => longitude),
      ],
    });
  }
}
