import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { brotliDecompress } from 'node:zlib';
import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { getPackageFileUrl } from '#platform/kernel/package-file.js';

export const PLACES = 'places';
const FILE = 'data/places.tsv.br';
const INSERT_BATCH_SIZE = 2_000;
const DELETE_BATCH_SIZE = 10_000;

const INSERT = {
  name: 'gazetteer_add_places',
  text: `
    insert into gazetteer_places (load_id, key, country, state, population, latitude, longitude)
    select $1, * from unnest($2::text[], $3::text[], $4::text[], $5::int[], $6::float4[], $7::float4[])`,
};

type Columns = [string[], string[], string[], number[], number[], number[]];

/**
 * Loads the bundled places into the database, once for each version of the file. They are not needed before the first
 * address is looked up.
 */
@Injectable()
export class PlacesLoader {
  private readonly log = new Logger('places');
  private loading: Promise<void> | undefined;
  private isLoaded = false;
  private loadError: unknown;

  constructor(private readonly pool: Pool) {}

  /**
   * Starts the load if it is needed, without waiting for it.
   * @returns whether the places are loaded
   * @throws the error of the last load; the next call tries again
   */
  ensureLoaded(): boolean {
    const { loadError } = this;
    if (loadError !== undefined) {
      this.loadError = undefined;
      throw loadError;
    }
    if (this.isLoaded) return true;
    this.loading ??= this.load()
      .then(() => {
        this.isLoaded = true;
      })
      .catch((error: unknown) => {
        this.loadError = error;
      })
      .finally(() => {
        this.loading = undefined;
      });
    return false;
  }

  /** Loads the places. Rows of a process that was killed half-way are not part of the gazetteer. */
  async load(): Promise<void> {
    const file = await readFile(getPackageFileUrl(FILE));
    const version = createHash('sha256').update(file).digest('hex');
    const currentLoad = await this.pool.query<{ version: string; load_id: number }>(
      'select version, load_id from gazetteer_parts where part = $1',
      [PLACES],
    );
    if (currentLoad.rows[0]?.version !== version) await this.replace(file, version);
  }

  private async replace(file: Buffer, version: string): Promise<void> {
    const startedAt = performance.now();
    const { rows } = await this.pool.query<{ id: number }>(
      `select nextval('gazetteer_loads')::int as id`,
    );
    const id = rows[0]?.id ?? 0;
    let nameCount = 0;
    const text = (await promisify(brotliDecompress)(file)).toString();
    for (const columns of readColumns(text)) {
      await this.pool.query({ ...INSERT, values: [id, ...columns] });
      nameCount += columns[0].length;
    }
    // A load that started later may have deleted these rows.
    const { rowCount } = await this.pool.query(
      `insert into gazetteer_parts (part, load_id, version)
       select $1, $2, $3 where (select count(*) from gazetteer_places where load_id = $2) = $4
       on conflict (part) do update
         set load_id = excluded.load_id, version = excluded.version, loaded_at = now()`,
      [PLACES, id, version, nameCount],
    );
    if (rowCount !== 1) throw new Error('the places were loaded by two processes at once');
    await this.deleteBefore(id);
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    this.log.log(`${nameCount} place names were loaded in ${seconds} s`);
  }

  private async deleteBefore(id: number): Promise<void> {
    for (let deleted = DELETE_BATCH_SIZE; deleted === DELETE_BATCH_SIZE;) {
      const { rowCount } = await this.pool.query(
        `delete from gazetteer_places where ctid = any (array(
           select ctid from gazetteer_places where load_id < $1 limit ${DELETE_BATCH_SIZE}))`,
        [id],
      );
      deleted = rowCount ?? 0;
    }
  }
}

/** Reads the file in batches, with one row for each name. */
function* readColumns(text: string): Generator<Columns> {
  let columns: Columns = [[], [], [], [], [], []];
  for (let start = 0, end; (end = text.indexOf('\n', start)) >= 0; start = end + 1) {
    const [country = '', state = '', population, latitude, longitude, keys = ''] = text
      .slice(start, end)
      .split('\t');
    for (const key of keys.split('|')) {
      columns[0].push(key);
      columns[1].push(country);
      columns[2].push(state);
      columns[3].push(Number(population));
      columns[4].push(Number(latitude));
      columns[5].push(Number(longitude));
    }
    if (columns[0].length >= INSERT_BATCH_SIZE) {
      yield columns;
      columns = [[], [], [], [], [], []];
    }
  }
  yield columns;
}
