import { readFileSync } from 'node:fs';
import { publishedEvents } from '#platform/http/endpoint.js';

export const WEBHOOKS_PAGE = 'docs/webhooks.md';

/** Renders docs/webhooks.md with the table of events; the text around it stays. */
export function renderWebhooksPage(): string {
  const page = readFileSync(WEBHOOKS_PAGE, 'utf8');
  const table = /(?<=\n## Events\n\n)(?:\|.*\n)+/;
  if (!table.test(page)) throw new Error(`${WEBHOOKS_PAGE} has no table of events`);
  return page.replace(table, () => renderTable());
}

function renderTable(): string {
  const rows = [...publishedEvents.values()].map(({ type, summary, details }) => {
    const when = details ? `${summary}. ${details.replace(/\.$/, '')}` : summary;
    return `| \`${type}\` | ${when} |`;
  });
  return ['| Type | When |', '| --- | --- |', ...rows].map((row) => `${row}\n`).join('');
}
