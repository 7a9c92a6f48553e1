import type { ToolArguments } from './tool-request.js';
import { isDryRun } from './tool-request.js';
import type { ToolOperation } from './tool-schema.js';

/** A response of the API. */
export type ApiResponse = {
  status: number;
  headers: Readonly<Record<string, string | undefined>>;
  body: unknown;
};

export type Picture = { png: Buffer; note: string };

type Content =
  | { type: 'text'; text: string }
  | { type: 'image'; data: string; mimeType: 'image/png' };

export type ToolResult = {
  content: Content[];
  structuredContent?: Record<string, unknown>;
  isError?: true;
};

type Failure = {
  error?: string;
  code?: string;
  errors?: Record<string, string[]>;
  existing?: { type: string; id: number };
  resolution?: string;
  documentation_url?: string;
  request_id?: string;
};

const CHECKED_FIELDS =
  'The token, the store, the records of the path and all fields are valid. What depends on balances, limits and other records is checked only when it is done.';

const MAX_LIST = 100;

/** Texts that cannot be more than a value: times, dates, UUIDs, event ids, colours. */
const HARMLESS =
  /^(\d{4}-\d\d-\d\d(T[\d:.]+Z)?|[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}|evt_\w{26}|#[\da-f]{6}|\d+)$/i;
/** Fields that hold one of a few words of ours, or an identifier of ours. */
const OWN_WORDS = new Set([
  'status',
  'state',
  'type',
  'role',
  'code',
  'locale',
  'time_zone',
  'country',
  'stamp_icon',
  'strip_type',
  'strip_preset',
  'paper_size',
  'contact_collection_mode',
  'event',
  'events',
  'interval',
  'payload_format',
  'signature',
  'disabled_reason',
]);
/** A word has no room for an instruction. */
const WORD = /^[\w./+-]{1,64}$/;
const SECRET_PLACEHOLDER = 'not shown to assistants';

/**
 * Turns a response of the API into the result of a tool (MCP-11, MCP-16).
 * @param publicUrl the service's: its own URLs are no texts of others
 */
export function toToolResult(
  tool: ToolOperation,
  args: ToolArguments,
  response: ApiResponse,
  { publicUrl, picture }: { publicUrl: string; picture?: Picture | undefined },
): ToolResult {
  const isDry = isDryRun(tool, args);
  const isChecked = isDry && isOnlyDryRunRefused(response);
  if (response.status >= 400 && !isChecked) return toErrorResult(response);
  const nextCursor = findNextCursor(response.headers['link']);
  const { body, note } = cutList(response.body ?? null, tool.longList);
  const notes = [
    ...(isChecked ? [CHECKED_FIELDS] : []),
    ...(picture ? [picture.note] : []),
    ...(note === undefined ? [] : [note]),
  ];
  const structuredContent = {
    data: isChecked ? null : markTexts(body, '', publicUrl),
    ...(isDry && { dry_run: true }),
    ...(response.headers['idempotent-replayed'] === 'true' && { replayed: true }),
    ...(nextCursor !== undefined && { next_cursor: nextCursor }),
    ...(notes.length > 0 && { note: notes.join(' ') }),
  };
  return {
    content: [
      { type: 'text', text: JSON.stringify(structuredContent) },
      ...(picture
        ? [
            {
              type: 'image' as const,
              data: picture.png.toString('base64'),
              mimeType: 'image/png' as const,
            },
          ]
        : []),
    ],
    structuredContent,
  };
}

/** Leaves the last elements of a list: years of stamps would fill the context of a model. */
export function cutList(body: unknown, name: string | undefined): { body: unknown; note?: string } {
  const list = name === undefined ? undefined : (body as Record<string, unknown>)[name];
  if (name === undefined || !Array.isArray(list) || list.length <= MAX_LIST) return { body };
  return {
    body: { ...(body as object), [name]: list.slice(-MAX_LIST) },
    note: `Only the last ${MAX_LIST} of ${list.length} ${name} are shown.`,
  };
}

/** Tells whether the operation has no dry run, and found nothing else that is wrong. */
export function isOnlyDryRunRefused({ status, body }: ApiResponse): boolean {
  const { errors } = (body ?? {}) as Failure;
  return status === 422 && Object.keys(errors ?? {}).join() === 'dry_run';
}

/** Says what was wrong and what to do, as the API does. */
function toErrorResult({ status, body }: ApiResponse): ToolResult {
  const { error, code, errors, existing, resolution, documentation_url, request_id } = (body ??
    {}) as Failure;
  const fields = Object.entries(errors ?? {})
    .filter(([field]) => field !== 'dry_run')
    .map(([field, messages]) => `${field}: ${messages.join('; ')}`);
  return createErrorResult([
    `${error ?? 'The request failed'} (${status} ${code ?? 'unknown'})`,
    ...fields,
    ...(existing ? [`It belongs to the ${existing.type} ${existing.id}.`] : []),
    ...(resolution === undefined ? [] : [resolution]),
    ...(documentation_url === undefined ? [] : [`More: ${documentation_url}`]),
    ...(request_id === undefined ? [] : [`Request: ${request_id}`]),
  ]);
}

export function createErrorResult(lines: string[]): ToolResult {
  return { content: [{ type: 'text', text: lines.join('\n') }], isError: true };
}

/**
 * Marks every text that may be somebody else's, so that the model can tell it from what the service says. A field that
 * is new in the API is marked too. Secrets are left out: what a model has read may be repeated anywhere.
 */
export function markTexts(value: unknown, key: string, publicUrl: string): unknown {
  if (key === 'secret' && typeof value === 'string') return SECRET_PLACEHOLDER;
  if (typeof value === 'string') {
    return isOwnText(value, key, publicUrl) ? value : { untrusted_text: value };
  }
  if (Array.isArray(value)) return value.map((item) => markTexts(item, key, publicUrl));
  if (typeof value !== 'object' || value === null) return value;
  // Here the names of the fields are somebody else's too.
  if (key === 'metadata') return { untrusted_text: JSON.stringify(value) };
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, markTexts(item, name, publicUrl)]),
  );
}

function isOwnText(text: string, key: string, publicUrl: string): boolean {
  if (HARMLESS.test(text)) return true;
  if (OWN_WORDS.has(key)) return WORD.test(text);
  return key.endsWith('_url') && text.startsWith(`${publicUrl}/`) && !/\s/.test(text);
}

/** Finds the cursor of the next page in a Link (LIST-06). */
function findNextCursor(link: string | undefined): string | undefined {
  const target = /<([^>]*)>; *rel="next"/.exec(link ?? '')?.[1];
  if (target === undefined) return undefined;
  return new URL(target, 'http://own.invalid').searchParams.get('cursor') ?? undefined;
}
