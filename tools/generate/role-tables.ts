import { readFileSync } from 'node:fs';
import { endpoints, tags } from '#platform/http/endpoint.js';
import { isAllowed, OPERATIONS, ROLES, type Operation } from '#identity/roles.js';

export const ROLES_PAGE = 'docs/roles.md';

/** Renders docs/roles.md with the tables of operations by tag; the text before them stays. */
export function renderRolesPage(): string {
  const [text = ''] = readFileSync(ROLES_PAGE, 'utf8').split('\n### ');
  const names = [...tags.values()]
    .sort((one, other) => one.order - other.order)
    .map(({ name }) => name);
  const sections = [...names, undefined].flatMap((tag) => {
    const operations = OPERATIONS.filter((operation) => findTag(operation) === tag);
    // Tokens of the admin API have no role.
    if (operations.length === 0) return [];
    return [`### ${tag ?? 'The console'}\n\n${renderTable(operations)}`];
  });
  return `${text}\n${sections.join('\n\n')}\n`;
}

/** Finds the tag of an operation, or of the one that a right belongs to; undefined for those of the console. */
function findTag(operation: Operation): string | undefined {
  const [name = ''] = operation.split('.');
  return endpoints.get(name)?.tag;
}

function renderTable(operations: Operation[]): string {
  return [
    ['Operation', ...ROLES],
    ['', ...ROLES].map(() => '---'),
    ...operations.map((operation) => [
      `\`${operation}\``,
      ...ROLES.map((role) => (isAllowed(role, operation) ? 'yes' : '')),
    ]),
  ]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');
}
