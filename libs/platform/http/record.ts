import type { Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import type { AuthenticatedRequest } from './caller.js';
import { getRouteConfig } from './route-config.js';

/** Looks up the record of a path; throws NotFoundError when it does not exist. */
export type RecordLookup = (
  modules: ModuleRef,
  accountId: number,
  path: Record<string, string>,
) => Promise<unknown>;

/**
 * Creates the lookup of a path's record.
 * @param find throws NotFoundError
 */
export function createRecordLookup<S>(
  service: Type<S>,
  find: (service: S, accountId: number, path: Record<string, string>) => Promise<unknown>,
): RecordLookup {
  return (modules, accountId, path) =>
    find(modules.get(service, { strict: false }), accountId, path);
}

/**
 * Reports a missing record (404) before field errors (422), see CONV-38. Called only when there are such errors,
 * since commands look up the record themselves.
 * @throws NotFoundError
 */
export async function requireRecord(
  request: AuthenticatedRequest,
  modules: ModuleRef,
): Promise<void> {
  const { accountId, params } = request;
  const { record } = getRouteConfig<{ record?: RecordLookup }>(request);
  if (record === undefined || accountId === undefined) return;
  await record(modules, accountId, params as Record<string, string>);
}
