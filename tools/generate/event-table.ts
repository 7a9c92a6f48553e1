import { readFileSync } from 'node:fs';
import { publishedEvents } from '#platform/http/endpoint.js';
import { PUBLIC_EVENTS } from '#outbound/public-events/public-events.js';

export const WEBHOOKS_PAGE = 'docs/webhooks.md';
export const EVENT_OPTIONS = 'clients/n8n/nodes/event-options.ts';

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

/** Renders the list of events that the n8n nodes offer, by their names, as its linter wants them. */
export function renderEventOptions(): string {
  const options = PUBLIC_EVENTS.map((value) => {
    const words = value.split(/[._]/).map((word) => word.charAt(0).toUpperCase() + word.slice(1));
    return `{ name: '${words.join(' ')}', value: '${value}' },`;
  });
  return `import type { INodePropertyOptions } from 'n8n-workflow';

/** The events that a subscription may name. */
export const EVENT_OPTIONS: INodePropertyOptions[] = [
${options.toSorted().join('\n')}
];
`;
}
