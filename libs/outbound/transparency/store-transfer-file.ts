import type { AccountLogoSet } from '#loyalty/accounts/account.events.js';
import type { CardStripImageSet } from '#loyalty/cards/card.events.js';
import type { TreeHead } from './checkpoint.js';
import { hashLeaf, type Leaf } from './leaf.js';
import { HASH_BYTES, computeProofRoot } from './merkle-tree.js';

/** The first line of an exported history; docs/history.md defines the format. */
export const EXPORT_FORMAT = 'inkpad-history/1';

type PictureEvent = CardStripImageSet | AccountLogoSet;

const PICTURE_EVENTS = new Set<string>([
  'CardStripImageSet',
  'AccountLogoSet',
] satisfies PictureEvent['type'][]);

export type ExportHeader = {
  format: string;
  account_id: number;
  checkpoint: string;
  /** Whether the keys of its customers follow the events. */
  personal: boolean;
};

type ExportedEvent<E> = { event: E; leaf_index: number; inclusion_proof: string[] };
/**
 * `key`: base64; null for a customer who was erased. `renewed`: data that it does not open was sealed with a key that
 * was destroyed.
 */
export type ExportedKey = { customer_id: number; key: string | null; renewed?: boolean };
/** `hash`: the SHA-256 in hex that the events name; `png`: base64. */
/** @property png in Base64; null: nothing shows the picture any more, and it was deleted */
export type ExportedPicture = { hash: string; png: string | null };
export type ExportEnd = { events: number; streams: number };

export type ExportLine<E> =
  | ExportHeader
  | ExportedEvent<E>
  | { personal_key: ExportedKey }
  | { picture: ExportedPicture }
  | { end: ExportEnd };

/** Finds the hash of the picture that an event names. */
export function findPictureHash({
  type,
  data,
}: {
  type: string;
  data: unknown;
}): string | undefined {
  return PICTURE_EVENTS.has(type) ? (data as PictureEvent['data']).picture : undefined;
}

type ChainedEvent = Leaf & { meta: { accountId: number } };

/** A line of an exported history is invalid. */
export class InvalidExportError extends Error {}

/** Validates the lines of an exported history one by one, as clients/verifier does. */
export class ExportValidator<E extends ChainedEvent> {
  readonly heads = new Map<string, { revision: number; hash: string }>();
  private eventCount = 0;
  private lastIndex = -1;
  private isComplete = false;

  /** @param hashEvent hashes an event and the one before it; null for the first of a stream */
  constructor(
    private readonly accountId: number,
    private readonly tree: TreeHead,
    private readonly hashEvent: (
      event: E,
      before: { revision: number; hash: string } | null,
    ) => string,
  ) {}

  /** @throws InvalidExportError */
  checkEvent({ event, leaf_index: index, inclusion_proof: proof }: ExportedEvent<E>): void {
    const { stream, revision, hash, meta } = event;
    const label = `${stream} revision ${revision}`;
    const before = this.heads.get(stream) ?? null;
    const createError = (problem: string) => new InvalidExportError(`${label} ${problem}`);
    if (meta.accountId !== this.accountId) throw createError('belongs to another store');
    if (revision !== (before?.revision ?? -1) + 1)
      throw createError('does not follow the one before it');
    if (this.hashEvent(event, before) !== hash) throw createError('was changed');
    if (!Number.isSafeInteger(index) || index <= this.lastIndex)
      throw createError('is out of order');
    const hashes = proof.map((text) => Buffer.from(text, 'base64'));
    const root = hashes.every(({ length }) => length === HASH_BYTES)
      ? computeProofRoot(hashLeaf(event), { index, size: this.tree.size }, hashes)
      : undefined;
    if (!root?.equals(this.tree.root)) throw createError('is not in the signed history');
    this.heads.set(stream, { revision, hash });
    this.eventCount++;
    this.lastIndex = index;
  }

  /** @throws InvalidExportError */
  checkEnd({ events, streams }: ExportEnd): void {
    if (events !== this.eventCount)
      throw new InvalidExportError(`${this.eventCount} of ${events} events are in the file`);
    if (streams !== this.heads.size) {
      throw new InvalidExportError(`${this.heads.size} of ${streams} streams are in the file`);
    }
    this.isComplete = true;
  }

  /** @throws InvalidExportError when the end is missing */
  finish(): ExportEnd {
    if (!this.isComplete) throw new InvalidExportError('the file ends too early');
    return { events: this.eventCount, streams: this.heads.size };
  }
}
