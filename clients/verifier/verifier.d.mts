type Head = { size: number; root: Buffer };
type Event = {
  stream: string;
  revision: number;
  id: string;
  type: string;
  version: number;
  data: unknown;
  meta: unknown;
};

export class NotProven extends Error {}
export const EXPORT_FORMAT: string;
export function leafHash(data: Buffer | string): Buffer;
export function nodeHash(left: Buffer, right: Buffer): Buffer;
export function rootOfInclusion(given: {
  leaf: Buffer;
  index: number;
  size: number;
  proof: Buffer[];
}): Buffer;
export function verifyInclusion(given: {
  leaf: Buffer;
  index: number;
  size: number;
  proof: Buffer[];
  root: Buffer;
}): void;
export function verifyConsistency(old: Head, later: Head, proof: Buffer[]): void;
export function verifierOf(text: string): { name: string; id: string };
export function verifyCheckpoint(note: string, verifierKey: string): Head & { origin: string };
export function canonicalJson(value: unknown): string;
export function eventHash(event: Event, previous: string | null): string;
export function publicEventId(id: string): string;
export function leafOf(event: { stream: string; revision: number; hash: string }): Buffer;
export function verifyProof(
  response: object,
  verifierKey: string,
): { event: Event; index: number; size: number };
export function verifyContinuation(
  response: object,
  verifierKey: string,
): { first: Head; second: Head };
export function verifyExport(
  lines: AsyncIterable<string>,
  verifierKey: string,
  each?: (entry: object) => Promise<void>,
): Promise<{ accountId: number; events: number; streams: number; size: number; keys: number }>;
