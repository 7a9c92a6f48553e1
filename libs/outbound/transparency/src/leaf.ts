import { hashLeafData } from './merkle-tree.js';

/** What a leaf stands for: `hash` (hex) covers the event's content and all earlier events of its stream. */
export type Leaf = { stream: string; revision: number; hash: string };

/** The bytes that are hashed as a leaf. docs/history.md defines them for others: they never change. */
export function encodeLeaf({ stream, revision, hash }: Leaf): string {
  return `inkpad event 1\n${stream}\n${revision}\n${hash}\n`;
}

export function hashLeaf(event: Leaf): Buffer {
  return hashLeafData(encodeLeaf(event));
}
