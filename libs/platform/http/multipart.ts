import { findTypeParameter } from './content-type.js';

/** @property isFile whether the part has a name of a file */
export type FormPart = { name: string; isFile: boolean; bytes: Buffer };

const LINE_END = '\r\n';
const HEADER_END = '\r\n\r\n';
/** Of a boundary (RFC 2046, section 5.1.1). */
const MAX_BOUNDARY_LENGTH = 70;
const DISPOSITION = /^content-disposition:\s*form-data\s*;/im;
const NAME = /;\s*name=(?:"([^"]*)"|([^\s;"]+))/i;
const FILE_NAME = /;\s*filename=/i;

/**
 * Parses multipart/form-data (RFC 7578). The parts are views of the body: a copy would take the memory of a large file
 * once more.
 * @param maxParts after one more than that, the rest is left
 * @returns undefined for a body that is none
 */
export function parseMultipart(
  body: Buffer,
  contentType: string,
  maxParts: number,
): FormPart[] | undefined {
  const boundary = findTypeParameter(contentType, 'boundary') ?? '';
  if (boundary === '' || boundary.length > MAX_BOUNDARY_LENGTH) return undefined;
  const delimiter = `--${boundary}`;
  if (!startsWith(body, delimiter, 0)) return undefined;
  const parts: FormPart[] = [];
  let at = delimiter.length;
  while (!startsWith(body, '--', at)) {
    if (!startsWith(body, LINE_END, at)) return undefined;
    const headerEnd = body.indexOf(HEADER_END, at);
    const end =
      headerEnd < 0 ? -1 : body.indexOf(LINE_END + delimiter, headerEnd + LINE_END.length);
    if (end < 0) return undefined;
    const header = body.toString('utf8', at + LINE_END.length, headerEnd);
    const [, quotedName, plainName] = NAME.exec(header) ?? [];
    const name = quotedName ?? plainName;
    if (name === undefined || !DISPOSITION.test(header)) return undefined;
    const bytes = body.subarray(Math.min(headerEnd + HEADER_END.length, end), end);
    parts.push({ name: unescapeName(name), isFile: FILE_NAME.test(header), bytes });
    if (parts.length > maxParts) return parts;
    at = end + LINE_END.length + delimiter.length;
  }
  return parts;
}

function startsWith(body: Buffer, text: string, at: number): boolean {
  return body.toString('latin1', at, at + text.length) === text;
}

/** Reverts the escapes of browsers (HTML Standard, multipart form data). */
function unescapeName(name: string): string {
  return name.replaceAll('%0D', '\r').replaceAll('%0A', '\n').replaceAll('%22', '"');
}
