import { HASH_BYTES, hashRoot, type Node } from './merkle-tree.js';

/** C2SP tlog-tiles: a tile holds 256 adjacent hashes, and the next level holds the roots of full tiles. */
const TILE_LEVELS = 8;
const TILE_WIDTH = 2 ** TILE_LEVELS;

export type TileId = { level: number; index: number };

/** A tile with at most 256 hashes, concatenated. */
export type Tile = TileId & { hashes: Buffer };

/** The right edge of the tree, which is sufficient to append leaves. */
export type Edge = {
  /** The number of leaves. */
  size: number;
  /** The hashes of the last tile of each level, unless it is full. */
  rows: Buffer[];
};

export const EMPTY: Edge = { size: 0, rows: [] };

/** Appends leaves. @returns the new edge, and the tiles that are new or longer than before */
export function growEdge(edge: Edge, leaves: Buffer[]): { edge: Edge; tiles: Tile[] } {
  const rows: Buffer[] = [];
  const tiles: Tile[] = [];
  let newHashes = leaves;
  for (let level = 0; level < edge.rows.length || newHashes.length > 0; level++) {
    const currentRow = edge.rows[level] ?? Buffer.alloc(0);
    let index = Math.floor(edge.size / TILE_WIDTH ** (level + 1));
    const roots: Buffer[] = [];
    let row = newHashes.length === 0 ? currentRow : Buffer.concat([currentRow, ...newHashes]);
    for (; row.length >= TILE_WIDTH * HASH_BYTES; index++) {
      const hashes = row.subarray(0, TILE_WIDTH * HASH_BYTES);
      tiles.push({ level, index, hashes });
      roots.push(hashRoot(hashes));
      row = row.subarray(TILE_WIDTH * HASH_BYTES);
    }
    if (newHashes.length > 0 && row.length > 0) tiles.push({ level, index, hashes: row });
    rows.push(row);
    newHashes = roots;
  }
  return { edge: { size: edge.size + leaves.length, rows }, tiles };
}

/** Lists the tiles of the right edge of a tree, without full ones. */
export function listEdgeTiles(size: number): TileId[] {
  const ids: TileId[] = [];
  for (
    let level = 0, hashes = size;
    hashes > 0;
    level++, hashes = Math.floor(hashes / TILE_WIDTH)
  ) {
    if (hashes % TILE_WIDTH > 0) ids.push({ level, index: Math.floor(hashes / TILE_WIDTH) });
  }
  return ids;
}

/** Reads the right edge of a tree. @param read returns a tile's hashes, possibly more than the tree of this size had */
export function readEdge(size: number, read: (id: TileId) => Buffer): Edge {
  const rows: Buffer[] = [];
  for (const id of listEdgeTiles(size)) {
    const count = Math.floor(size / TILE_WIDTH ** id.level) % TILE_WIDTH;
    const hashes = read(id);
    if (hashes.length < count * HASH_BYTES) throw createMissingHashesError(id);
    while (rows.length < id.level) rows.push(Buffer.alloc(0));
    rows.push(hashes.subarray(0, count * HASH_BYTES));
  }
  return { size, rows };
}

/** Finds the tile from which the hash of a complete subtree can be computed. */
export function findTile({ level, index }: Node): TileId {
  const first = index * 2 ** (level % TILE_LEVELS);
  return { level: Math.floor(level / TILE_LEVELS), index: Math.floor(first / TILE_WIDTH) };
}

/** Computes the hash of a complete subtree. @param hashes of the tile that `findTile` returns */
export function hashNodeInTile(hashes: Buffer, node: Node): Buffer {
  const count = 2 ** (node.level % TILE_LEVELS);
  const first = (node.index * count) % TILE_WIDTH;
  const part = hashes.subarray(first * HASH_BYTES, (first + count) * HASH_BYTES);
  if (part.length < count * HASH_BYTES) throw createMissingHashesError(findTile(node));
  return hashRoot(part);
}

function createMissingHashesError({ level, index }: TileId): Error {
  return new Error(`tile ${level}/${index} of the tree lacks hashes`);
}

/** Computes the root of a tree from its right edge only. */
export function hashEdge({ rows }: Edge): Buffer {
  let carry: Buffer = Buffer.alloc(0);
  for (const row of rows) {
    const hashes = Buffer.concat([row, carry]);
    if (hashes.length > 0) carry = hashRoot(hashes);
  }
  return hashRoot(carry);
}
