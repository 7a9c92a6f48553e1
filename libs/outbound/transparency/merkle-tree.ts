import { hash } from 'node:crypto';

/** SHA-256. */
export const HASH_BYTES = 32;

/** A complete subtree: its 2^level leaves begin at index * 2^level. */
export type Node = { level: number; index: number };

/** The leaves from `from` (inclusive) to `to` (exclusive). */
export type LeafRange = { from: number; to: number };

const LEAF_PREFIX = '\0';
const NODE_PREFIX = Buffer.from([1]);

/** Hashes a leaf. Leaves and inner nodes have different prefixes (RFC 6962 section 2.1). */
export function hashLeafData(data: Buffer | string): Buffer {
  return sha256(
    typeof data === 'string' ? LEAF_PREFIX + data : Buffer.concat([Buffer.from(LEAF_PREFIX), data]),
  );
}

export function hashNode(left: Buffer, right: Buffer): Buffer {
  return sha256(Buffer.concat([NODE_PREFIX, left, right], 1 + 2 * HASH_BYTES));
}

/** Hashes data. Encoding as text takes half the time: as 'buffer' every hash allocates its own memory. */
function sha256(data: Buffer | string): Buffer {
  return Buffer.from(hash('sha256', data, 'binary'), 'binary');
}

/** The hash of a tree without leaves. */
export const EMPTY_ROOT = sha256('');

/** Computes the root of a subtree. @param hashes adjacent hashes of one level, concatenated */
export function hashRoot(hashes: Buffer): Buffer {
  let row = hashes;
  while (row.length > HASH_BYTES) row = hashPairs(row);
  return row.length === 0 ? EMPTY_ROOT : row;
}

/** Hashes pairs into the next level. A last hash without a sibling moves up unchanged, as in RFC 6962. */
function hashPairs(row: Buffer): Buffer {
  const pair = Buffer.alloc(1 + 2 * HASH_BYTES, NODE_PREFIX);
  const parents = Buffer.allocUnsafe(Math.ceil(row.length / (2 * HASH_BYTES)) * HASH_BYTES);
  let end = 0;
  for (let offset = 0; offset < row.length; offset += 2 * HASH_BYTES) {
    const bytes = row.copy(pair, 1, offset, offset + 2 * HASH_BYTES);
    if (bytes < 2 * HASH_BYTES) end += row.copy(parents, end, offset);
    else end += parents.write(hash('sha256', pair, 'binary'), end, 'binary');
  }
  return parents;
}

/**
 * Lists the parts of the tree whose hashes prove that a leaf is in it, from the leaf upwards (RFC 6962 section 2.1.1).
 * @param index less than `size`
 */
export function listInclusionRanges(index: number, size: number): LeafRange[] {
  if (!(index >= 0 && index < size)) throw new RangeError(`leaf ${index} of ${size}`);
  const path: LeafRange[] = [];
  let [from, to] = [0, size];
  while (to - from > 1) {
    const middle = from + splitPoint(to - from);
    if (index < middle) {
      path.push({ from: middle, to });
      to = middle;
    } else {
      path.push({ from, to: middle });
      from = middle;
    }
  }
  return path.reverse();
}

/**
 * Lists the parts of the tree whose hashes prove that it begins with a smaller one (RFC 6962 section 2.1.2).
 * @param oldSize from 1 to `size`; for an equal size the proof is empty
 */
export function listConsistencyRanges(oldSize: number, size: number): LeafRange[] {
  if (!(oldSize >= 1 && oldSize <= size)) throw new RangeError(`${oldSize} leaves of ${size}`);
  const path: LeafRange[] = [];
  let [from, to] = [0, size];
  while (oldSize !== to) {
    const middle = from + splitPoint(to - from);
    if (oldSize <= middle) {
      path.push({ from: middle, to });
      to = middle;
    } else {
      path.push({ from, to: middle });
      from = middle;
    }
  }
  // The verifier already has the root of the smaller tree.
  if (from > 0) path.push({ from, to });
  return path.reverse();
}

/** Lists the complete subtrees of a part of the tree, the largest first. */
export function listNodes({ from, to }: LeafRange): Node[] {
  const nodes: Node[] = [];
  for (let at = from; at < to;) {
    const level = Math.floor(Math.log2(to - at));
    const leaves = 2 ** level;
    nodes.push({ level, index: at / leaves });
    at += leaves;
  }
  return nodes;
}

/** Hashes a part of the tree. @param read returns the hash of a complete subtree */
export function hashRange(range: LeafRange, read: (node: Node) => Buffer): Buffer {
  const nodes = listNodes(range).map(read);
  const last = nodes.pop();
  if (last === undefined) return EMPTY_ROOT;
  return nodes.reduceRight((right, left) => hashNode(left, right), last);
}

/**
 * Computes the root from a leaf and its proof (RFC 9162 section 2.1.3.2).
 * @returns undefined when the proof is too long or too short
 */
export function computeProofRoot(
  leaf: Buffer,
  { index, size }: { index: number; size: number },
  proof: Buffer[],
): Buffer | undefined {
  const ranges = index >= 0 && index < size ? listInclusionRanges(index, size) : undefined;
  if (ranges?.length !== proof.length) return undefined;
  return proof.reduce((hash, sibling, i) => {
    const isLeft = (ranges[i]?.from ?? 0) < index;
    return isLeft ? hashNode(sibling, hash) : hashNode(hash, sibling);
  }, leaf);
}

/** Returns the greatest power of two below n. */
function splitPoint(n: number): number {
  let split = 2 ** Math.floor(Math.log2(n));
  if (split === n) split /= 2;
  return split;
}
