import type { CardStripImageSet } from '#cards/card.events.js';
import type { TreeHead } from './checkpoint.js';
import { leafOf, type Leaf } from './leaf.js';
import { HASH_BYTES, rootOfProof } from './merkle-tree.js';

/** The first line of an exported history; docs/history.md defines the format. */
export const EXPORT_FORMAT = 'inkpad-history/1';

const SETS_PICTURE: CardStripImageSet['type'] = 'CardStripImageSet';

export type ExportHeader = {
  format: string;
  account_id: number;
  checkpoint: string;
  /** Whether the keys of its customers follow the events. */
  personal: boolean;
};

type ExportedEvent<E> = { event: E; leaf_index: number; inclusion_proof: string[] };
/**
 * `key`: base64; null for a customer who was erased. `renewed`: what it does not open was sealed with a key that was
 * destroyed.
 */
export type ExportedKey = { customer_id: number; key: string | null; renewed?: boolean };
/** `hash`: the SHA-256 in hex that the events name; `png`: base64. */
export type ExportedPicture = { hash: string; png: string };
export type ExportEnd = { events: number; streams: number };

export type ExportLine<E> =
  | ExportHeader
  | ExportedEvent<E>
  | { personal_key: ExportedKey }
  | { picture: ExportedPicture }
  | { end: ExportEnd };

/** The hash of the picture that an event names. */
export function pictureIn({ type, data }: { type: string; data: unknown }): string | undefined {
  return type === SETS_PICTURE ? (data as CardStripImageSet['data']).picture : undefined;
}

type Chained = Leaf & { meta: { accountId: number } };

/** What is wrong with a line of an exported history. */
export class ExportFault extends Error {}

/** Checks the lines of an exported history one after the other, as clients/verifier does. */
export class ExportCheck<E extends Chained> {
  readonly heads = new Map<string, { revision: number; hash: string }>();
  private events = 0;
  private last = -1;
  private isComplete = false;

  /** @param chainedHash of an event after the hash before it, null for the first of a stream */
  constructor(
    private readonly accountId: number,
    private readonly tree: TreeHead,
    private readonly chainedHash: (
      event: E,
      before: { revision: number; hash: string } | null,
    ) => string,
  ) {}

  /** @throws ExportFault */
  event({ event, leaf_index: index, inclusion_proof: proof }: ExportedEvent<E>): void {
    const { stream, revision, hash, meta } = event;
    const named = `${stream} revision ${revision}`;
    const before = this.heads.get(stream) ?? null;
    const fault = (why: string) => new ExportFault(`${named} ${why}`);
    if (meta.accountId !== this.accountId) throw fault('is of another store');
    if (revision !== (before?.revision ?? -1) + 1) throw fault('does not follow the one before it');
    if (this.chainedHash(event, before) !== hash) throw fault('was changed');
    if (!Number.isSafeInteger(index) || index <= this.last) throw fault('is out of order');
    const hashes = proof.map((text) => Buffer.from(text, 'base64'));
    const root = hashes.every(({ length }) => length === HASH_BYTES)
      ? rootOfProof(leafOf(event), { index, size: this.tree.size }, hashes)
      : undefined;
    if (!root?.equals(this.tree.root)) throw fault('is not in the history that was signed');
    this.heads.set(stream, { revision, hash });
    this.events++;
    this.last = index;
  }

  /** @throws ExportFault */
  end({ events, streams }: ExportEnd): void {
    if (events !== this.events)
      throw new ExportFault(`${this.events} of ${events} events are here`);
    if (streams !== this.heads.size) {
      throw new ExportFault(`${this.heads.size} of ${streams} streams are here`);
    }
    this.isComplete = true;
  }

  /** @throws ExportFault when the end is missing */
  done(): ExportEnd {
    if (!this.isComplete) throw new ExportFault('the file ends too early');
    return { events: this.events, streams: this.heads.size };
  }
}
