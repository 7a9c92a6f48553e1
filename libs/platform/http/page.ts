import {
  createParamDecorator,
  Injectable,
  type ExecutionContext,
  type PipeTransform,
} from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { PlatformConfig } from '#platform/kernel/platform-config.js';
import { InvalidFieldsError } from '#platform/kernel/errors.js';
import { open, seal } from '#platform/kernel/sealing.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import type { AuthenticatedRequest } from './caller.js';
import { IntegerField, TextField, TimeField } from './fields.js';
import { Dto } from './dtos.js';
import { LargeResponses } from './large-responses.js';
import { readPage } from './page-by-bytes.js';
import { PLATFORM_ISSUES } from '#platform/kernel/issues.js';

const MAX_LIMIT = 250;
/** Number of elements that are read before the size of any is known; most pages have no more. */
const FIRST_STEP_COUNT = 101;
const SEALED_EMPTY_BYTES = 28;

/** Query parameters of every list that is an array (LIST-03, LIST-04). */
@Dto('PageQuery')
export class PageQuery {
  @IntegerField({
    min: 1,
    max: MAX_LIMIT,
    optional: true,
    description:
      'How many elements at most, in about 4 MiB; the Link header leads to the next page while there is one',
  })
  declare readonly limit: number | null;

  @TextField({
    max: 1024,
    optional: true,
    description:
      'Where the page begins, as given by a Link header; without limit, the page holds all the rest, up to about 4 MiB',
  })
  declare readonly cursor: string | null;
}

/** Declares the filter of lists by the time of the last change; null: whenever that was. */
export const UpdatedSinceField = (): PropertyDecorator =>
  TimeField({ optional: true, description: 'Changed at or after this time' });

/**
 * Sort key of an element, its id last. A cursor holds these values and not the element. So a list can continue
 * although the element was deleted or moved.
 */
export type CursorKey = readonly number[];

/** A part of a list: after a key, and at most this many elements. */
export type PageRange = { after: CursorKey | null; limit: number };

/**
 * Encodes a cursor, which is opaque and valid only for its list.
 * @param list the path of it
 */
export function encodeCursor(key: Buffer, list: string, cursorKey: CursorKey): string {
  return seal(key, Buffer.from(JSON.stringify(cursorKey)), list).toString('base64url');
}

/** Decodes a cursor. Undefined when it was not encoded for this list (LIST-11). */
export function decodeCursor(key: Buffer, list: string, cursor: string): CursorKey | undefined {
  const sealed = Buffer.from(cursor, 'base64url');
  // Decoding passes over what is not base64url, and short tags would be taken for good ones.
  if (sealed.toString('base64url') !== cursor || sealed.length <= SEALED_EMPTY_BYTES) {
    return undefined;
  }
  let plain: Buffer;
  try {
    plain = open(key, sealed, list);
  } catch {
    return undefined;
  }
  return JSON.parse(plain.toString()) as CursorKey;
}

/**
 * Renders a Link header to the next page.
 * @param url path and query of this page
 * @param next the query parameter that tells where the next page begins
 */
export function renderNextLink(
  publicUrl: string,
  url: string,
  next: Record<string, string>,
): string {
  const { path, query } = splitUrl(url);
  for (const [name, value] of Object.entries(next)) query.set(name, value);
  return `<${publicUrl}${path}?${query}>; rel="next"`;
}

/** Adds a link to the response and keeps the others: a deprecated version points to its policy. */
export function addLink(reply: FastifyReply, link: string): void {
  void reply.header('link', [reply.getHeader('link') ?? [], link].flat().join(', '));
}

/** Reads the page that a request asks for. */
export class PageReader {
  private readonly list: string;

  constructor(
    private readonly key: Buffer,
    private readonly publicUrl: string,
    private readonly url: string,
    private readonly addLink: (link: string) => void,
    /** Waits until the page may grow large. */
    private readonly waitToGrow: () => Promise<void>,
  ) {
    this.list = splitUrl(url).path.replace(/\/+$/, '');
  }

  /**
   * Returns the requested page, or as much of it as fits into one response. While there is more, the response gets a
   * link to it.
   * @param maxBytes near which the page ends; by default 4 MiB
   * @param find returns the elements of a range in the order of their keys
   * @throws InvalidFieldsError when the cursor does not belong to this list
   */
  async getPage<T>(
    { limit, cursor }: PageQuery,
    find: (range: PageRange) => Promise<T[]>,
    getKey: (element: T) => CursorKey,
    maxBytes?: number,
  ): Promise<T[]> {
    const after = cursor === null ? null : decodeCursor(this.key, this.list, cursor);
    if (after === undefined)
      throw new InvalidFieldsError({ cursor: [PLATFORM_ISSUES.invalid_cursor] });
    const { page, hasMore } = await readPage<T>(
      { limit, first: FIRST_STEP_COUNT, maxBytes },
      (last, count) => find({ after: last === undefined ? after : getKey(last), limit: count }),
      (element) => Buffer.byteLength(JSON.stringify(element)),
      this.waitToGrow,
    );
    const last = page.at(-1);
    if (hasMore && last !== undefined) {
      const cursor = encodeCursor(this.key, this.list, getKey(last));
      this.addLink(renderNextLink(this.publicUrl, this.url, { cursor }));
    }
    return page;
  }

  /** Returns the page of a list that is complete in memory, in the order of its keys. */
  getPageFrom<T>(
    query: PageQuery,
    all: T[],
    getKey: (element: T) => CursorKey,
    maxBytes?: number,
  ): Promise<T[]> {
    const find = async ({ after, limit }: PageRange) => {
      const first = after ? all.findIndex((element) => isAfter(getKey(element), after)) : 0;
      return first < 0 ? [] : all.slice(first, first + limit);
    };
    return this.getPage(query, find, getKey, maxBytes);
  }
}

/** Tells whether a key comes after another in the order of a list. */
function isAfter(key: CursorKey, otherKey: CursorKey): boolean {
  const i = key.findIndex((part, at) => part !== otherKey[at]);
  return i >= 0 && (key[i] ?? 0) > (otherKey[i] ?? 0);
}

type Exchange = { request: AuthenticatedRequest; reply: FastifyReply };

@Injectable()
class PagesPipe implements PipeTransform<Exchange, PageReader> {
  constructor(
    private readonly config: PlatformConfig,
    private readonly keys: MasterKeys,
    private readonly large: LargeResponses,
  ) {}

  transform({ request, reply }: Exchange): PageReader {
    return new PageReader(
      this.keys.getDataKey('cursors'),
      this.config.publicUrl,
      request.url,
      (link) => addLink(reply, link),
      () => this.large.acquire(request, reply),
    );
  }
}

const Exchanged = createParamDecorator((_: unknown, execution: ExecutionContext): Exchange => {
  const http = execution.switchToHttp();
  return { request: http.getRequest(), reply: http.getResponse() };
});

/** Injects the pages of a request into a list's handler. */
export const Paged = (): ParameterDecorator => Exchanged(PagesPipe);

function splitUrl(url: string): { path: string; query: URLSearchParams } {
  const start = url.indexOf('?');
  return start < 0
    ? { path: url, query: new URLSearchParams() }
    : { path: url.slice(0, start), query: new URLSearchParams(url.slice(start + 1)) };
}
