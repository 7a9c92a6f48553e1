import { escapeHtml } from '#platform/kernel/templates.js';

/** Renders samples and descriptions of the OpenAPI document as HTML, in the classes of the guides. */

const KEYWORDS =
  'import|from|const|await|async|for|of|in|if|throw|new|return|print|with|as|true|false|null|None|True|False|curl';
/** Names of JSON, texts, keywords and numbers. What is between them stays as it is. */
const TOKEN = new RegExp(
  `("(?:[^"\\\\]|\\\\.)*")(?=\\s*:)|("(?:[^"\\\\]|\\\\.)*"|'(?:[^'\\\\]|\\\\.)*')|(?<![\\w.-])(${KEYWORDS})(?![\\w-])|(?<![\\w.-])(\\d+(?:\\.\\d+)?)(?![\\w-])`,
  'g',
);
const CLASSES = ['attr', 'string', 'keyword', 'number'];

/** Highlights JSON, curl, TypeScript and Python well enough for short samples. */
export function highlightSample(source: string): string {
  let html = '';
  let end = 0;
  for (const match of source.matchAll(TOKEN)) {
    const [text, ...groups] = match;
    const name = CLASSES[groups.findIndex((group) => group !== undefined)] ?? 'string';
    html += escapeHtml(source.slice(end, match.index));
    html += `<span class="hljs-${name}">${escapeHtml(text)}</span>`;
    end = match.index + text.length;
  }
  return html + escapeHtml(source.slice(end));
}

/** Renders a description, in which backticks stand around code. */
export function renderDescription(text: string): string {
  return escapeHtml(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>');
}
