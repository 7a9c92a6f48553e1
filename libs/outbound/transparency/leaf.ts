import { hashLeafData } from './merkle-tree.js';

/** The content of a leaf. `hash` (hex) covers the event's content and all earlier events of its stream. */
export type Leaf = { stream: string; revision: number; hash: string };

/** Encodes a leaf for its hash. docs/history.md specifies the encoding, which never changes. */
export function encodeLeaf({ stream, revision, hash }: Leaf): string {
  return `inkpad event 1\n${stream}\n${revision}\n${hash}\n`;
}

export function hashLeaf(event: Leaf): Buffer {
  return hashLeafData(encodeLeaf(event));
}
