import { isDeepStrictEqual } from 'node:util';
import { mergeMetadata, findMetadataIssue, type Metadata } from '#platform/kernel/metadata.js';
import type { ExternalReference } from './customer.events.js';
import { ISSUES } from '#translations/issues.js';
import { locateIssue, type Issue } from '#platform/kernel/issues.js';

/** A reference in a request: metadata is merged into the existing one. */
export type ReferenceInput = { source: string; externalId: string; metadata: Metadata };

/** Every change rewrites the whole list, so it must stay small. */
const REFERENCE_LIMITS = { max: 100, bytes: 32 * 1024 };

/**
 * Adds references or updates them, by source and external id; a duplicate in the request is applied in order. Never
 * removes one. One that does not change keeps its time of update.
 */
export function upsertReferences(
  current: ExternalReference[],
  input: ReferenceInput[],
  now: Date,
): ExternalReference[] {
  const at = now.toISOString();
  const references = new Map(current.map((before) => [createReferenceKey(before), before]));
  for (const { source, externalId, metadata } of input) {
    const key = createReferenceKey({ source, externalId });
    const previous = references.get(key);
    const merged = mergeMetadata(previous?.metadata ?? {}, metadata);
    if (previous && isDeepStrictEqual(previous.metadata, merged)) continue;
    references.set(key, {
      source,
      externalId,
      metadata: merged,
      createdAt: previous?.createdAt ?? at,
      updatedAt: at,
    });
  }
  return sortReferences([...references.values()]);
}

export function sortReferences(references: ExternalReference[]): ExternalReference[] {
  return references.sort((a, b) =>
    a.source === b.source ? compare(a.externalId, b.externalId) : compare(a.source, b.source),
  );
}

export function createReferenceKey({
  source,
  externalId,
}: {
  source: string;
  externalId: string;
}): string {
  return `${source} ${externalId}`;
}

export function findReferencesIssue(references: ExternalReference[]): Issue | undefined {
  for (const { source, metadata } of references) {
    const error = findMetadataIssue(metadata);
    // Not by its id, which is personal: a rejection may be stored under an Idempotency-Key.
    if (error) return locateIssue(`of ${source}: metadata `, error);
  }
  if (references.length > REFERENCE_LIMITS.max) {
    return ISSUES.too_many_references({ max: REFERENCE_LIMITS.max });
  }
  return Buffer.byteLength(JSON.stringify(references)) > REFERENCE_LIMITS.bytes
    ? ISSUES.references_too_large
    : undefined;
}

/** Compares two names that differ. */
function compare(a: string, b: string): number {
  return a < b ? -1 : 1;
}
