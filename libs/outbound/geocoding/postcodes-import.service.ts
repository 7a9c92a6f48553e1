import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { RejectedError } from '#platform/kernel/errors.js';
import { parsePostcodeLine, type Postcode } from './postcode-line.js';
import { ISSUES } from '#translations/issues.js';

const INSERT_BATCH_SIZE = 2_000;
const DELETE_BATCH_SIZE = 10_000;

const INSERT = {
  name: 'gazetteer_add_postcodes',
  text: `
    insert into gazetteer_postcodes (load_id, postcode, country, place, latitude, longitude)
    select $1, * from unnest($2::text[], $3::text[], $4::text[], $5::float4[], $6::float4[])`,
};

/**
 * Replaces each country of the file as a whole, after the file was read to its end. A load whose rows another load has
 * deleted has no effect.
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
    limit ${DELETE_BATCH_SIZE}))`;

/** Imports postcode files of GeoNames, which an operator has downloaded. */
@Injectable()
export class PostcodesImport {
  constructor(private readonly pool: Pool) {}

  /**
   * Imports a file completely or not at all. An interrupted import can be repeated.
   * @param version the operator's name for the file
   * @param progress called with the number of lines so far
   * @throws RejectedError for a line that is not of such a file
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
    let lineCount = 0;
    let batch: Postcode[] = [];
    for await (const line of lines) {
      lineCount += 1;
      const postcode = parsePostcodeLine(line);
      if (!postcode) {
        throw new RejectedError({
          base: [ISSUES.postcode_line_invalid({ line: lineCount })],
        });
      }
      batch.push(postcode);
      if (batch.length < INSERT_BATCH_SIZE) continue;
      await this.insert(id, batch);
      batch = [];
      progress(lineCount);
    }
    await this.insert(id, batch);
    progress(lineCount);
    const importedParts = await this.pool.query<{ part: string }>(FINISH, [id, lineCount, version]);
    if (importedParts.rows.length === 0) {
      throw new RejectedError({
        base: [ISSUES.postcode_file_empty],
      });
    }
    for (let deletedCount = DELETE_BATCH_SIZE; deletedCount === DELETE_BATCH_SIZE;) {
      deletedCount = (await this.pool.query(DELETE_REPLACED, [id])).rowCount ?? 0;
    }
    const countries = importedParts.rows.map(({ part }) => part.slice('postcodes:'.length)).sort();
    return { postcodes: lineCount, countries };
  }

  private async insert(id: number, batch: Postcode[]): Promise<void> {
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
