import { describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { hashEvent } from '#platform/event-store/port/hash-chain.js';
import { openCheckpoint, signCheckpoint } from './checkpoint.js';
import { hashLeaf, encodeLeaf } from './leaf.js';
import {
  listConsistencyRanges,
  EMPTY_ROOT,
  hashRange,
  listInclusionRanges,
  hashLeafData,
  computeProofRoot,
  type Node,
  type LeafRange,
} from './merkle-tree.js';
import {
  createSignerKey,
  openNote,
  signNote,
  parseSigner,
  renderVerifierKey,
  parseVerifier,
} from '#platform/kernel/signed-note.js';
import {
  readEdge,
  EMPTY,
  growEdge,
  hashNodeInTile,
  hashEdge,
  findTile,
  type Edge,
  type TileId,
} from './tiles.js';

type Vectors = Record<'known' | 'many', Tree> & {
  events: Tree & {
    events: (Parameters<typeof hashEvent>[2] & {
      stream: string;
      revision: number;
      hash: string;
    })[];
  };
  note: { signer_key: string; verifier_key: string; checkpoint: string; witnessed: string };
};
type Tree = {
  leaves: string[];
  roots: string[];
  inclusion: { size: number; index: number; proof: string[] }[];
  consistency: { old: number; size: number; proof: string[] }[];
};

/** Made with Go's implementation of the same standards (clients/verifier/README.md). */
const vectors = JSON.parse(
  readFileSync('clients/verifier/vectors/vectors.json', 'utf8'),
) as Vectors;

/** Grows a tree by batches, and keeps it in tiles as the database does. */
class GrownTree {
  private readonly tiles = new Map<string, Buffer>();
  private edge: Edge = EMPTY;

  add(leaves: Buffer[]): void {
    const { edge, tiles } = growEdge(this.edge, leaves);
    this.edge = edge;
    for (const tile of tiles) this.tiles.set(`${tile.level}/${tile.index}`, tile.hashes);
  }

  get size(): number {
    return this.edge.size;
  }

  get rows(): string[] {
    return this.edge.rows.map((row) => row.toString('hex'));
  }

  resume(): void {
    this.edge = readEdge(this.edge.size, (id) => this.tile(id));
  }

  at(size: number): Edge {
    return readEdge(size, (id) => this.tile(id));
  }

  hash(range: LeafRange): string {
    return hashRange(range, (node: Node) =>
      hashNodeInTile(this.tile(findTile(node)), node),
    ).toString('base64');
  }

  private tile({ level, index }: TileId): Buffer {
    const hashes = this.tiles.get(`${level}/${index}`);
    if (!hashes) throw new Error(`there is no tile ${level}/${index}`);
    return hashes;
  }
}

const hashLeaves = ({ leaves }: Tree) =>
  leaves.map((leaf) => hashLeafData(Buffer.from(leaf, 'base64')));

function growTree(leaves: Buffer[], batch: number): GrownTree {
  const tree = new GrownTree();
  for (let at = 0; at < leaves.length; at += batch) {
    tree.add(leaves.slice(at, at + batch));
    tree.resume();
  }
  return tree;
}

describe.each([
  ['the known leaves', vectors.known],
  ['many leaves', vectors.many],
])('a tree of %s', (_, expected) => {
  test.each([1, 3, 100, 255, 256, 257, 1000])(
    'has the roots and proofs that Go computes when it grows by %i leaves at a time',
    (batch) => {
      const tree = growTree(hashLeaves(expected), batch);
      expected.roots.forEach((root, i) => {
        expect(tree.hash({ from: 0, to: i + 1 })).toBe(root);
      });
      for (const { size, index, proof } of expected.inclusion) {
        const ranges = listInclusionRanges(index, size);
        expect(ranges.map((range) => tree.hash(range))).toEqual(proof);
        const leaf = hashLeafData(Buffer.from(expected.leaves[index] ?? '', 'base64'));
        const hashes = proof.map((hash) => Buffer.from(hash, 'base64'));
        const root = computeProofRoot(leaf, { index, size }, hashes);
        expect(root?.toString('base64')).toBe(expected.roots[size - 1]);
        expect(computeProofRoot(leaf, { index, size }, [...hashes, leaf])).toBeUndefined();
        expect(computeProofRoot(leaf, { index: size, size }, hashes)).toBeUndefined();
      }
      for (const { old, size, proof } of expected.consistency) {
        const ranges = listConsistencyRanges(old, size);
        expect(ranges.map((range) => tree.hash(range))).toEqual(proof);
      }
    },
  );
});

test('a tree without leaves has the hash of no bytes as its root', () => {
  expect(hashRange({ from: 0, to: 0 }, () => Buffer.alloc(32))).toEqual(EMPTY_ROOT);
  expect(EMPTY_ROOT.toString('hex')).toBe(
    'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  );
});

test('a tree of several levels of tiles has the same hash however it grew', () => {
  const leaves = Array.from({ length: 66_000 }, (_, i) => hashLeafData(Buffer.from(`${i}`)));
  const atOnce = growTree(leaves, leaves.length);
  const inSteps = growTree(leaves, 4_097);
  const range = { from: 0, to: leaves.length };
  expect(inSteps.hash(range)).toBe(atOnce.hash(range));
  expect(inSteps.rows).toEqual(atOnce.rows);
  expect(atOnce.rows).toHaveLength(3);
  // The same tiles yield any earlier size.
  expect(inSteps.at(65_536)).toEqual(growEdge(EMPTY, leaves.slice(0, 65_536)).edge);
});

test('hashEdge returns the root of a tree from its right edge alone', () => {
  let edge = EMPTY;
  expect(hashEdge(edge)).toEqual(EMPTY_ROOT);
  hashLeaves(vectors.many).forEach((leaf, i) => {
    edge = growEdge(edge, [leaf]).edge;
    expect(hashEdge(edge).toString('base64')).toBe(vectors.many.roots[i]);
  });
});

test('a proof is refused for a leaf or a size that the tree does not have', () => {
  expect(() => listInclusionRanges(3, 3)).toThrow(RangeError);
  expect(() => listInclusionRanges(-1, 3)).toThrow(RangeError);
  expect(() => listConsistencyRanges(0, 3)).toThrow(RangeError);
  expect(() => listConsistencyRanges(4, 3)).toThrow(RangeError);
});

test('a tile that lacks hashes is refused', () => {
  const { tiles } = growEdge(EMPTY, hashLeaves(vectors.known));
  const hashes = tiles[0]?.hashes.subarray(0, 5 * 32) ?? Buffer.alloc(0);
  expect(() => readEdge(8, () => hashes)).toThrow('tile 0/0 of the tree lacks hashes');
  expect(() => hashNodeInTile(hashes, { level: 1, index: 3 })).toThrow('lacks hashes');
});

test('hashEvent and encodeLeaf return what another implementation computes', () => {
  let before: { revision: number; hash: string } | null = null;
  vectors.events.events.forEach((event, i) => {
    expect(hashEvent(event.stream, before, event)).toBe(event.hash);
    expect(Buffer.from(encodeLeaf(event)).toString('base64')).toBe(vectors.events.leaves[i]);
    before = event;
  });
  const tree = growTree(vectors.events.events.map(hashLeaf), 2);
  expect(tree.hash({ from: 0, to: 3 })).toBe(vectors.events.roots[2]);
});

describe('a signed checkpoint', () => {
  const { signer_key, verifier_key, checkpoint, witnessed } = vectors.note;
  const signer = parseSigner(signer_key);
  const verifier = parseVerifier(verifier_key);
  if (!signer || !verifier) throw new Error('the keys of the vectors must be read');
  const head = { size: 3, root: Buffer.from(vectors.events.roots[2] ?? '', 'base64') };

  test('is byte for byte what Go signs', () => {
    expect(signCheckpoint(head, signer)).toBe(checkpoint);
    expect(renderVerifierKey(signer)).toBe(verifier_key);
  });

  test('is opened with the verifier key, with or without the signature of a witness', () => {
    expect(openCheckpoint(checkpoint, verifier)).toEqual(head);
    expect(openCheckpoint(witnessed, verifier)).toEqual(head);
  });

  test.each([
    ['another size', checkpoint.replace('\n3\n', '\n4\n')],
    ['another signature', checkpoint.replace(/(— \S+ \S{20})./, '$1A')],
    ['no signature', checkpoint.slice(0, checkpoint.indexOf('\n\n') + 2)],
    ['nothing after the text', 'shop.example/inkpad\n3\n'],
    ['something after it', `${checkpoint}more`],
  ])('is not opened with %s', (_, note) => {
    expect(openCheckpoint(note, verifier)).toBeUndefined();
  });

  test('is not opened when it is of another key, or of another log with the same key', () => {
    const otherSigner = parseSigner(createSignerKey(signer.name));
    if (!otherSigner) throw new Error('a new key must be read');
    expect(openCheckpoint(checkpoint, otherSigner)).toBeUndefined();
    expect(openCheckpoint(signCheckpoint(head, otherSigner), otherSigner)).toEqual(head);
    const foreign = signNote(`other.example\n3\n${head.root.toString('base64')}\n`, signer);
    expect(openNote(foreign, verifier)).toBeDefined();
    expect(openCheckpoint(foreign, verifier)).toBeUndefined();
  });

  test.each(['-1', '03', '3.0', '99999999999999999', ''])(
    'is not opened with the size "%s"',
    (size) => {
      const text = `${signer.name}\n${size}\n${head.root.toString('base64')}\n`;
      expect(openCheckpoint(signNote(text, signer), verifier)).toBeUndefined();
    },
  );

  test.each(['', 'AAAA', 'not base64'])('is not opened with the root "%s"', (root) => {
    const text = `${signer.name}\n3\n${root}\n`;
    expect(openCheckpoint(signNote(text, signer), verifier)).toBeUndefined();
  });

  test.each([
    '',
    'shop.example/inkpad',
    signer_key,
    verifier_key.replace('shop', 'stop'),
    verifier_key.slice(0, -4),
  ])('cannot have the verifier key "%s"', (text) => {
    expect(parseVerifier(text)).toBeUndefined();
  });

  test.each(['', verifier_key, signer_key.replace('shop', 'stop'), signer_key.slice(0, -8)])(
    'cannot have the signer key "%s"',
    (text) => {
      expect(parseSigner(text)).toBeUndefined();
    },
  );
});
