import type { Issue } from '#platform/kernel/issues.js';
import { ISSUES } from '#translations/issues.js';

/** First bytes of Excel's files, of ZIP archives, which newer workbooks are, and of OLE containers, the older ones. */
const WORKBOOKS = ['504b0304', '504b0506', '504b0708', 'd0cf11e0'];
/** First bytes of PDF, RTF, gzip, 7z, RAR, bzip2, xz, Zstandard, PNG, JPEG, GIF and TIFF. */
const BINARIES = [
  '25504446',
  '7b5c727466',
  '1f8b',
  '377abcaf271c',
  '526172211a07',
  '425a68',
  'fd377a585a',
  '28b52ffd',
  '89504e47',
  'ffd8ff',
  '47494638',
  '49492a00',
  '4d4d002a',
];
const LONGEST = 6;
/** Of the text, for control characters that no table has. */
const SAMPLE_LENGTH = 1_024;
const CONTROL = /(?![\t\v\f])\p{Cc}/u;
/** The beginning of JSON over several lines, or of a list: each line of NDJSON is an object. No header begins so. */
const JSON_DOCUMENT = /^\s*(?:\[\s*(?:[{\]]|\[\s*["\d])|\{\s*[\r\n])/;
const MARKUP = /^\s*<(?:!doctype|html|head|body|table|meta|\?xml)[\s>]/i;

/** Finds what a file is by its first bytes, when that is no text. */
export function findBinaryProblem(bytes: Uint8Array): Issue | undefined {
  const start = Buffer.from(bytes.subarray(0, LONGEST)).toString('hex');
  if (WORKBOOKS.some((signature) => start.startsWith(signature))) return ISSUES.file_workbook;
  return BINARIES.some((signature) => start.startsWith(signature))
    ? ISSUES.file_not_text
    : undefined;
}

/** Finds what decoded text is, when that is no table. */
export function findTextProblem(text: string): Issue | undefined {
  const start = text.slice(0, SAMPLE_LENGTH);
  if (CONTROL.test(start.split(/[\r\n]/, 1)[0] ?? '')) return ISSUES.file_not_text;
  if (JSON_DOCUMENT.test(start)) return ISSUES.file_json_document;
  return MARKUP.test(start) ? ISSUES.file_markup : undefined;
}
