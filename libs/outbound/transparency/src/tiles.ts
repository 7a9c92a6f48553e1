import { HASH_BYTES, rootOf, type Node } from './merkle-tree.js';

/** As in C2SP tlog-tiles: a tile holds 256 adjacent hashes, and the next level holds the roots of full tiles. */
const LEVELS = 8;
const WIDTH = 2 ** LEVELS;

export type TileId = { level: number; index: number };

/** @property hashes one after the other, at most 256 */
export type Tile = TileId & { hashes: Buffer };

/** The right edge of the tree, which is all that is needed for it to grow. */
export type Edge = {
  /** Leaves. */
  size: number;
  /** For each level the last tile's hashes, while it is not full. */
  rows: Buffer[];
};

export const EMPTY: Edge = { size: 0, rows: [] };

/** @returns the tiles that are new or longer than before */
export function grown(edge: Edge, leaves: Buffer[]): { edge: Edge; tiles: Tile[] } {
  const rows: Buffer[] = [];
  const tiles: Tile[] = [];
  let added = leaves;
  for (let level = 0; level < edge.rows.length || added.length > 0; level++) {
    const known = edge.rows[level] ?? Buffer.alloc(0);
    let index = Math.floor(edge.size / WIDTH ** (level + 1));
    const roots: Buffer[] = [];
    let row = added.length === 0 ? known : Buffer.concat([known, ...added]);
    for (; row.length >= WIDTH * HASH_BYTES; index++) {
      const hashes = row.subarray(0, WIDTH * HASH_BYTES);
      tiles.push({ level, index, hashes });
      roots.push(rootOf(hashes));
      row = row.subarray(WIDTH * HASH_BYTES);
    }
    if (added.length > 0 && row.length > 0) tiles.push({ level, index, hashes: row });
    rows.push(row);
    added = roots;
  }
  return { edge: { size: edge.size + leaves.length, rows }, tiles };
}

/** The tiles that hold the right edge of a tree; full ones are not part of it. */
export function edgeTiles(size: number): TileId[] {
  const ids: TileId[] = [];
  for (let level = 0, hashes = size; hashes > 0; level++, hashes = Math.floor(hashes / WIDTH)) {
    if (hashes % WIDTH > 0) ids.push({ level, index: Math.floor(hashes / WIDTH) });
  }
  return ids;
}

/** @param read the tile's hashes; it may hold more than the tree of this size had */
export function edgeOf(size: number, read: (id: TileId) => Buffer): Edge {
  const rows: Buffer[] = [];
  for (const id of edgeTiles(size)) {
    const count = Math.floor(size / WIDTH ** id.level) % WIDTH;
    const hashes = read(id);
    if (hashes.length < count * HASH_BYTES) throw missing(id);
    while (rows.length < id.level) rows.push(Buffer.alloc(0));
    rows.push(hashes.subarray(0, count * HASH_BYTES));
  }
  return { size, rows };
}

/** The tile from which the hash of a complete subtree can be had. */
export function tileWith({ level, index }: Node): TileId {
  const first = index * 2 ** (level % LEVELS);
  return { level: Math.floor(level / LEVELS), index: Math.floor(first / WIDTH) };
}

/** @param hashes of the tile that `tileWith` names */
export function hashIn(hashes: Buffer, node: Node): Buffer {
  const count = 2 ** (node.level % LEVELS);
  const first = (node.index * count) % WIDTH;
  const part = hashes.subarray(first * HASH_BYTES, (first + count) * HASH_BYTES);
  if (part.length < count * HASH_BYTES) throw missing(tileWith(node));
  return rootOf(part);
}

function missing({ level, index }: TileId): Error {
  return new Error(`tile ${level}/${index} of the tree lacks hashes`);
}

/** The root of a tree, from its right edge alone. */
export function rootOfEdge({ rows }: Edge): Buffer {
  let below: Buffer = Buffer.alloc(0);
  for (const row of rows) {
    const hashes = Buffer.concat([row, below]);
    if (hashes.length > 0) below = rootOf(hashes);
  }
  return rootOf(below);
}
