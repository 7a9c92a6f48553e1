import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Pool } from 'pg';
import { copyToKeep } from '#platform/kernel/kept-bytes.js';
import { query } from '#platform/database/connection.js';
import { OvertakenError } from '#platform/event-store/port/subscription-position.js';
import { BEGINNING, type Position } from '#platform/event-store/port/event-store.js';
import { formatPosition, parsePosition } from '#platform/event-store/port/position.js';
import type { TreeHead } from './checkpoint.js';
import {
  listConsistencyRanges,
  hashRange,
  listInclusionRanges,
  listNodes,
  type Node,
  type LeafRange,
} from './merkle-tree.js';
import {
  readEdge,
  listEdgeTiles,
  growEdge,
  hashNodeInTile,
  findTile,
  type Edge,
  type Tile,
  type TileId,
} from './tiles.js';

/** The name of the subscription that stores its position in the log. */
export const TRANSPARENCY_LOG = 'transparency log';

const FULL_TILE_BYTES = 8_192;
/** 8 MB. */
const MAX_CACHED_TILES = 1_000;

const READ_TREE = `
  select l.size, p.position from transparency_log l
  left join es.positions p on p.subscription = $1`;

const GROW_TREE = {
  name: 'transparency_grow',
  text: `
    with grown as (
      update transparency_log set size = $2 where size = $1 returning 1
    ), moved as (
      insert into es.positions (subscription, position)
      select $3, $4 where exists (select from grown)
      on conflict (subscription) do update set position = excluded.position, updated_at = now()
    ), tiles as (
      insert into transparency_tiles (level, index, hashes)
      select level, index, substring($9::bytea from start for bytes)
      from unnest($5::smallint[], $6::bigint[], $7::integer[], $8::integer[]) as t (level, index, start, bytes)
      where exists (select from grown)
      on conflict (level, index) do update set hashes = excluded.hashes
    )
    select from grown`,
};

const FIND_TILES = {
  name: 'transparency_tiles',
  text: `
    select t.level, t.index, t.hashes
    from unnest($1::smallint[], $2::bigint[]) as w (level, index)
    join transparency_tiles t on t.level = w.level and t.index = w.index`,
};

/** Stores the tree over all events as tiles. It is append-only, so any earlier tree can be computed from it. */
@Injectable()
export class Tree {
  /** Caches full tiles, which never change. */
  private readonly fullTiles = new LRUCache<string, Buffer>({ max: MAX_CACHED_TILES });

  constructor(private readonly pool: Pool) {}

  /** Reads the right edge of the tree, and its position in the log. */
  async read(): Promise<{ edge: Edge; position: Position }> {
    const [row] = await query<{ size: number; position: string | null }>(this.pool, {
      text: READ_TREE,
      values: [TRANSPARENCY_LOG],
    });
    if (!row) throw new Error('the table transparency_log has lost its row');
    const tile = await this.loadTiles(listEdgeTiles(row.size));
    return {
      edge: readEdge(row.size, tile),
      position: row.position === null ? BEGINNING : parsePosition(row.position),
    };
  }

  /**
   * Appends leaves, and moves the position in the same statement.
   * @param position of the last of these leaves, or beyond it
   * @throws OvertakenError: nothing was written
   */
  async append(edge: Edge, leaves: Buffer[], position: Position): Promise<Edge> {
    const { edge: nextEdge, tiles } = growEdge(edge, leaves);
    const result = await this.pool.query({
      ...GROW_TREE,
      values: [
        edge.size,
        nextEdge.size,
        TRANSPARENCY_LOG,
        formatPosition(position),
        tiles.map(({ level }) => level),
        tiles.map(({ index }) => index),
        ...packHashes(tiles),
      ],
    });
    if (result.rowCount !== 1) throw new OvertakenError();
    return nextEdge;
  }

  /** Gets the root of the tree at a size. @param size not more than the tree has now */
  async getHead(size: number): Promise<TreeHead> {
    const [root] = await this.hashRanges([{ from: 0, to: size }]);
    if (!root) throw new Error('a tree has a root');
    return { size, root };
  }

  getLeaf(index: number): Promise<Buffer> {
    return this.hashRanges([{ from: index, to: index + 1 }]).then(([hash]) => {
      if (!hash) throw new Error(`leaf ${index} has no hash`);
      return hash;
    });
  }

  getInclusionProof(index: number, size: number): Promise<Buffer[]> {
    return this.hashRanges(listInclusionRanges(index, size));
  }

  /** Gets the proofs of several leaves, in their order. */
  async getInclusionProofs(indexes: number[], size: number): Promise<Buffer[][]> {
    const ranges = indexes.map((index) => listInclusionRanges(index, size));
    const hashes = await this.hashRanges(ranges.flat());
    return ranges.map((path) => hashes.splice(0, path.length));
  }

  /** @param old at least 1 */
  getConsistencyProof(old: number, size: number): Promise<Buffer[]> {
    return this.hashRanges(listConsistencyRanges(old, size));
  }

  private async hashRanges(ranges: LeafRange[]): Promise<Buffer[]> {
    const tile = await this.loadTiles(ranges.flatMap(listNodes).map(findTile));
    const read = (node: Node) => hashNodeInTile(tile(findTile(node)), node);
    return ranges.map((range) => hashRange(range, read));
  }

  private async loadTiles(ids: TileId[]): Promise<(id: TileId) => Buffer> {
    const hashesById = new Map<string, Buffer>();
    const missing = new Map<string, TileId>();
    for (const id of ids) {
      const cached = this.fullTiles.get(toTileName(id));
      if (cached) hashesById.set(toTileName(id), cached);
      else missing.set(toTileName(id), id);
    }
    if (missing.size > 0) {
      const missingIds = [...missing.values()];
      const rows = await query<TileId & { hashes: Buffer }>(this.pool, {
        ...FIND_TILES,
        values: [missingIds.map(({ level }) => level), missingIds.map(({ index }) => index)],
      });
      for (const { hashes, ...id } of rows) {
        hashesById.set(toTileName(id), hashes);
        if (hashes.length === FULL_TILE_BYTES)
          this.fullTiles.set(toTileName(id), copyToKeep(hashes));
      }
    }
    return (id) => {
      const hashes = hashesById.get(toTileName(id));
      if (!hashes) throw new Error(`tile ${toTileName(id)} of the tree is missing`);
      return hashes;
    };
  }
}

/** Packs the hashes of all tiles into one value: an array would be sent as text, twice as long. */
function packHashes(tiles: Tile[]): [starts: number[], bytes: number[], hashes: Buffer] {
  const bytes = tiles.map(({ hashes }) => hashes.length);
  let start = 1;
  const starts = bytes.map((length) => (start += length) - length);
  return [starts, bytes, Buffer.concat(tiles.map(({ hashes }) => hashes))];
}

function toTileName({ level, index }: TileId): string {
  return `${level}/${index}`;
}
